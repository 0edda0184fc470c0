//! A bound on how deeply a message is nested. The JSON reader passes over a value that nobody asked
//! for by calling itself once per level, so that without a bound a hostile message would overflow
//! the stack, which ends the process.

/// No exchange's message has more than ten levels. This many fit on a stack of two megabytes: a level
/// takes about 40 kB of it in code that is not optimized, less than 1 kB in code that is.
const MAX_DEPTH: usize = if cfg!(debug_assertions) { 24 } else { 512 };

/// Whether `json` is nested too deeply to be read.
#[inline]
#[must_use]
pub(crate) fn is_too_deep(json: &[u8]) -> bool {
    // Nearly all messages have too few brackets for it, which is quickly counted.
    json.len() > MAX_DEPTH && has_many_brackets(json) && depth_exceeds(json, MAX_DEPTH)
}

fn has_many_brackets(json: &[u8]) -> bool {
    let count = |bracket| memchr::memchr_iter(bracket, json).count();
    count(b'[') + count(b'{') > MAX_DEPTH
}

/// Counts brackets outside of strings.
fn depth_exceeds(json: &[u8], limit: usize) -> bool {
    let mut depth = 0usize;
    let mut rest = json.iter();
    while let Some(byte) = rest.next() {
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = rest.next() {
                    match byte {
                        b'\\' => {
                            rest.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_depth_counts() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(!is_too_deep(nested(MAX_DEPTH).as_bytes()));
        assert!(is_too_deep(nested(MAX_DEPTH + 1).as_bytes()));
        assert!(is_too_deep(r#"{"a":"#.repeat(MAX_DEPTH + 1).as_bytes()));
        let wide = format!("[{}[]]", "[[],[]],".repeat(MAX_DEPTH));
        assert!(!is_too_deep(wide.as_bytes()));
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let text = format!("[\"{}\"]", "[".repeat(MAX_DEPTH * 2));
        assert!(!is_too_deep(text.as_bytes()));
        let hidden = r#"["]\"]","#.repeat(MAX_DEPTH + 1);
        assert!(is_too_deep(hidden.as_bytes()));
    }
}
