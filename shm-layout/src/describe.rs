//! The fields, codes and constants of the layout as data, for the tables of `docs/layout.md`.
//!
//! The doc comment of a field, code or constant is also its description in the document. The macros that
//! declare them keep it here, and `tests/layout_doc.rs` writes the tables. Of a doc comment the document has
//! the first paragraph; what concerns only Rust goes into a second one.

/// A field of a struct in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Its offset from the start of the struct, in bytes.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
    /// Its type as written in the source.
    pub ty: &'static str,
    /// Its doc comment.
    pub doc: &'static str,
}

/// A struct in shared memory.
pub trait Fields {
    /// Its name.
    const NAME: &'static str;
    /// All fields, by offset.
    const FIELDS: &'static [Field];
}

/// A constant or the code of an enum's variant.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    /// Its name in the source.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// Its doc comment.
    pub doc: &'static str,
}

/// An enum whose codes are stored in shared memory.
pub trait Codes {
    /// All variants, in the order of the source.
    const CODES: &'static [Constant];
}

/// The sizes and limits of segments and tables.
pub const LIMITS: [&[Constant]; 9] = [
    crate::block::LIMITS,
    crate::device::LIMITS,
    crate::segment::LIMITS,
    crate::counters::LIMITS,
    crate::control::LIMITS,
    crate::table::LIMITS,
    crate::table::FAILURE_LIMITS,
    crate::table::DRIVER_LIMITS,
    crate::table::REGION_LIMITS,
];

/// Declares constants and a list of them.
macro_rules! constants {
    ($vis:vis $list:ident; $($(#[doc = $doc:literal])* pub const $name:ident: $ty:ty = $value:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: $ty = $value;)*
        /// All of these constants, with their descriptions.
        $vis const $list: &[$crate::describe::Constant] = &[$($crate::describe::Constant {
            name: stringify!($name),
            value: $name as u64,
            doc: concat!($($doc, "\n"),*),
        },)*];
    };
}

/// Declares an enum with the code of each variant, and the array `ALL` of its variants.
macro_rules! codes {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[doc = $doc:literal])* $variant:ident = $code:tt,)*
    }) => {
        $(#[$meta])*
        pub enum $name { $($(#[doc = $doc])* $variant = $code,)* }

        impl $name {
            /// Every variant, by code.
            pub const ALL: [$name; <$name as $crate::describe::Codes>::CODES.len()] = [$($name::$variant),*];
        }

        impl $crate::describe::Codes for $name {
            const CODES: &'static [$crate::describe::Constant] = &[$($crate::describe::Constant {
                name: stringify!($variant),
                value: $name::$variant as u64,
                doc: concat!($($doc, "\n"),*),
            },)*];
        }
    };
}
pub(crate) use {codes, constants};
