//! A check for the tests: every tag is closed, in order, and every attribute quoted.

/// Panics with the place when `text` is not well formed. HTML's void elements need no end.
pub fn assert_well_formed(text: &str) {
    const VOID: [&str; 4] = ["meta", "br", "img", "input"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "stray '>' in {:?}",
            &rest[..start]
        );
        let end = rest[start..]
            .find('>')
            .unwrap_or_else(|| panic!("unclosed tag: {:.60}", &rest[start..]));
        let tag = &rest[start + 1..start + end];
        rest = &rest[start + end + 1..];
        if tag.starts_with('!') {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "wrong end tag");
            continue;
        }
        assert_eq!(
            tag.matches('"').count() % 2,
            0,
            "unbalanced quotes in <{tag}>"
        );
        let name = tag.split([' ', '/']).next().unwrap_or_default();
        if ["style", "script"].contains(&name) {
            let end = format!("</{name}>");
            rest = &rest[rest.find(&end).expect("style and script are closed")..];
        }
        if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "still open: {open:?}");
}

#[test]
#[should_panic(expected = "wrong end tag")]
fn crossed_tags_are_noticed() {
    assert_well_formed("<p><b>x</p></b>");
}
