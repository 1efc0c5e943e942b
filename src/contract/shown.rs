//! The piece of a file that a diagnostic shows. miette's own reading of a text begins at its first byte for each label,
//! counts columns in bytes and shows whole lines however long; here lines are looked up, columns are characters as
//! everywhere else, and long lines are cut.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::place::{Place, Source};

/// How much of a line is shown on either side of what is underlined.
const BESIDE: usize = 300;
/// What is longer is underlined on its first line alone.
const LONGEST: usize = 2_000;

impl Source {
    /// What is underlined of a place.
    pub(super) fn underlined(&self, place: Place) -> std::ops::Range<usize> {
        let (start, end) = (self.within(place.start as usize), self.within(place.end as usize));
        if end.saturating_sub(start) <= LONGEST {
            return start..end.max(start);
        }
        let line = self.shown[start..].find('\n').map_or(self.shown.len(), |at| start + at);
        start..self.within(line.min(start + BESIDE))
    }

    /// Whether two places can be underlined together: in one file, and not at the two ends of an endless line.
    pub(super) fn shows_both(&self, one: Place, other: Place) -> bool {
        let (first, last) = (one.start.min(other.start) as usize, one.end.max(other.end) as usize);
        one.file == other.file && (last - first <= LONGEST || self.line_of(first) != self.line_of(last))
    }

    /// The nearest place at or before this one that is no middle of a character.
    pub(super) fn within(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.shown.len());
        while !self.shown.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let (start, end) = (self.within(span.offset()), self.within(span.offset().saturating_add(span.len())));
        // The last line is that of the last character, where there is one.
        let (first, last) = (self.line_of(start), self.line_of(end.saturating_sub(1).max(start)));
        let before = first.saturating_sub(lines_before);
        let (line, from, column) = match self.line_start(before) {
            _ if lines_before == 0 => (first, start, self.line_column(start).column - 1),
            from if start - from <= BESIDE => (before, from, 0),
            _ => (first, self.within(start.saturating_sub(BESIDE)).max(self.line_start(first)), 0),
        };
        let whole = self.line_start(last.saturating_add(lines_after).saturating_add(1));
        let to = if whole.saturating_sub(end) > BESIDE { self.within(end + BESIDE) } else { whole.max(end) };
        let contents = MietteSpanContents::new_named(
            self.name.clone(),
            &self.shown.as_bytes()[from..to],
            (from, to - from).into(),
            line,
            column,
            self.line_of(to.saturating_sub(1).max(from)) + 1 - line,
        );
        Ok(Box::new(contents.with_language("TOML")))
    }
}
