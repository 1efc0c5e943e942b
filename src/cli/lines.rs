//! Two texts, line by line.

/// Beyond so many pairs of lines, what lies between the first and the last difference is shown as a whole.
const MOST_PAIRS: usize = 4_000_000;

/// What has to be taken away from `old` (`-`) and put in (`+`) to have `new`, with the numbers of the lines. Empty where
/// they are the same; how lines end makes no difference.
pub(super) fn changed(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old_rest, new_rest) = (&old[same..], &new[same..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old_rest[..old_rest.len() - tail], &new_rest[..new_rest.len() - tail]);
    let gone = |at: usize| format!("-{} {}", same + at + 1, old[at]);
    let come = |at: usize| format!("+{} {}", same + at + 1, new[at]);
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
        return (0..old.len()).map(gone).chain((0..new.len()).map(come)).collect();
    }
    // The longest common part of what is left of both, by dynamic programming from the end.
    let width = new.len() + 1;
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j, mut changes) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            changes.push(gone(i));
            i += 1;
        } else {
            changes.push(come(j));
            j += 1;
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn what_differs() {
        assert!(changed("a\r\nb\r\n", "a\nb").is_empty());
        assert_eq!(changed("a\nb\nc\nd", "a\nx\nc\ny\nd"), ["-2 b", "+2 x", "+4 y"]);
        assert_eq!(changed("", "a"), ["+1 a"]);
        assert_eq!(changed("a\na", "a"), ["-2 a"]);
        let (old, new) = ("o\n".repeat(3000), "n\n".repeat(3000));
        assert_eq!(changed(&old, &new).len(), 6000);
    }
}
