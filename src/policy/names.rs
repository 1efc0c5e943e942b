//! The names of headers that are sent again and again.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use http::HeaderName;

/// Header names that were met when requests were repeated. Nearly all requests of one operation have the same, and a name
/// that no table knows costs an allocation each time it is read; a clone costs none. Shared by clones; lock-free.
///
/// Bounded: the first few names are kept, and short ones alone. They are no secret, as values are.
#[derive(Clone, Default)]
pub(crate) struct Names(Arc<[OnceLock<HeaderName>; MOST]>);

/// How many are kept.
const MOST: usize = 24;
/// The longest one, in bytes.
const LONGEST: usize = 64;

impl Names {
    /// This name. `None`: it is none. `place`: which of its request's headers it is, as it is mostly the same one.
    pub(crate) fn get(&self, name: &[u8], place: usize) -> Option<HeaderName> {
        let expected = self.0.get(place).and_then(OnceLock::get);
        if let Some(known) = expected.filter(|known| known.as_str().as_bytes() == name) {
            return Some(known.clone());
        }
        let mut free = None;
        for place in &*self.0 {
            match place.get() {
                Some(known) if known.as_str().as_bytes() == name => return Some(known.clone()),
                Some(_) => {}
                None => {
                    free = Some(place);
                    break;
                }
            }
        }
        let name = HeaderName::from_bytes(name).ok()?;
        match free {
            // Another thread may have kept another name here meanwhile: this one is then kept the next time.
            Some(place) if name.as_str().len() <= LONGEST => drop(place.set(name.clone())),
            _ => {}
        }
        Some(name)
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().filter_map(OnceLock::get)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(names: &Names) -> usize {
        names.0.iter().filter(|place| place.get().is_some()).count()
    }

    #[test]
    fn a_name_is_kept_once_and_found_again() {
        let names = Names::default();
        for _ in 0..3 {
            for (place, name) in ["x-tenant", "accept", "x-trace"].into_iter().enumerate() {
                assert_eq!(names.get(name.as_bytes(), place).unwrap(), name);
                assert_eq!(names.get(name.as_bytes(), place + 1).unwrap(), name);
                assert_eq!(names.get(name.as_bytes(), MOST).unwrap(), name);
            }
        }
        assert_eq!(kept(&names), 3);
        assert_eq!(names.get(b"no name", 0), None);
    }

    #[test]
    fn a_stranger_who_makes_up_names_fills_no_memory() {
        let names = Names::default();
        let long = "x".repeat(LONGEST + 1);
        assert_eq!(names.get(long.as_bytes(), 0).unwrap(), *long);
        assert_eq!(kept(&names), 0);
        for number in 0..10 * MOST {
            let name = format!("x-{number}");
            assert_eq!(names.get(name.as_bytes(), number).unwrap(), *name);
        }
        assert_eq!(kept(&names), MOST);
        assert_eq!(names.get(b"x-others", 0).unwrap(), "x-others");
    }

    #[test]
    fn each_of_many_threads_gets_the_name_that_it_asks_for() {
        let names = Names::default();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let names = &names;
                scope.spawn(move || {
                    for number in 0..200 {
                        let name = format!("x-{}", (number + thread) % 40);
                        assert_eq!(names.get(name.as_bytes(), number % MOST).unwrap(), *name);
                    }
                });
            }
        });
    }
}
