//! Short texts in fixed-size fields.

/// Encodes a text into a zero-filled fixed-size field; what does not fit is cut at a character boundary.
pub fn encode<const N: usize>(text: &str) -> [u8; N] {
    let mut field = [0; N];
    let end = text.floor_char_boundary(N);
    field[..end].copy_from_slice(&text.as_bytes()[..end]);
    field
}

/// Decodes the text of a fixed-size field: up to the first zero byte, with invalid UTF-8 replaced.
///
/// Control characters are kept: code that displays the text must escape them.
pub fn decode(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}
