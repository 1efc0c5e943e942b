//! How a table of the format is written down once: for the reader, for inheritance, and for the JSON Schema.

/// A table of the format. Every key is optional to the reader: what has to be there is said by rules, which know what
/// was inherited.
///
/// `flatten field: Type` takes in the keys of another table. A key that is a word of Rust is written after `as`.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $name:ident $(flatten $flat:ident: $flat_type:ty;)? {
            $($(#[$doc:meta])* $field:ident $(as $key:literal)?: $type:ty,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
        pub(crate) struct $name {
            $(
                $(#[$doc])*
                $(#[cfg_attr(feature = "cli", schemars(rename = $key))])?
                pub(crate) $field: Option<$crate::contract::place::At<$type>>,
            )+
            $(
                #[cfg_attr(feature = "cli", schemars(flatten))]
                pub(crate) $flat: $flat_type,
            )?
        }

        impl $crate::contract::read::Keys for $name {
            fn keys(known: &mut Vec<&'static str>) {
                known.extend([$($crate::contract::table::key!($field $($key)?)),+]);
                $(<$flat_type as $crate::contract::read::Keys>::keys(known);)?
            }

            #[allow(unreachable_code)] // what follows where another table's keys are taken in
            fn key(
                &mut self,
                key: &str,
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut $crate::contract::read::Reader<'_>,
            ) -> bool {
                $(
                    if key == $crate::contract::table::key!($field $($key)?) {
                        self.$field = reader.at(value);
                        return true;
                    }
                )+
                $(return $crate::contract::read::Keys::key(&mut self.$flat, key, value, reader);)?
                false
            }

            fn over(self, below: Self) -> Self {
                $name {
                    $($field: $crate::contract::table::over(self.$field, below.$field),)+
                    $($flat: $crate::contract::read::Keys::over(self.$flat, below.$flat),)?
                }
            }

            fn weight(&self) -> u64 {
                let own: u64 = [$($crate::contract::weight::of(&self.$field)),+].iter().sum();
                $(let own = own + $crate::contract::read::Keys::weight(&self.$flat);)?
                own
            }
        }
    };
}

/// The name of a key: its field's, or the one given.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}

/// Tables that inherit key by key (D29: lists replace).
macro_rules! inherits {
    ($($name:ident),+) => {$(
        impl Read for $name {
            fn read(value: &toml::de::DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
                reader.table(value, place)
            }

            fn over(self, below: Self) -> Self {
                Keys::over(self, below)
            }

            fn weight(&self) -> u64 {
                Keys::weight(self)
            }
        }
    )+};
}

/// Tables that replace another as a whole.
macro_rules! replaces {
    ($($name:ident),+) => {$(
        impl Read for $name {
            fn read(value: &toml::de::DeValue<'_>, place: Place, reader: &mut Reader<'_>) -> Option<Self> {
                reader.table(value, place)
            }

            fn weight(&self) -> u64 {
                Keys::weight(self)
            }
        }
    )+};
}

pub(super) use {inherits, key, replaces, table};

use super::{place::At, read::Read};

/// What is more specific, over what is less.
pub(super) fn over<T: Read>(above: Option<At<T>>, below: Option<At<T>>) -> Option<At<T>> {
    match (above, below) {
        (Some(above), Some(below)) => Some(At { value: above.value.over(below.value), place: above.place }),
        (above, below) => above.or(below),
    }
}
