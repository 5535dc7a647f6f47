//! Owns what several fuzz targets share.
//!
//! A target never asks whether a result is the right one for an input of the world; it demands what must hold for
//! every input: no panic, no endless loop, no memory beyond the caps, every record accounted for, and that what was
//! read can be written and reads back as the same.

pub mod messages;
pub mod records;
