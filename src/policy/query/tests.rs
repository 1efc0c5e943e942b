use super::*;

const NAME: &str = "ifGenerationMatch";

#[track_caller]
fn check(name: &str, query: &str, filled: bool) {
    assert_eq!(is_filled(query, name), filled, "`{name}` in `{query}`");
}

#[test]
fn a_parameter_with_a_value() {
    for query in ["ifGenerationMatch=7", "ifGenerationMatch=0", "alt=json&ifGenerationMatch=7&prettyPrint=false"] {
        check(NAME, query, true);
    }
    // A value may itself hold what separates a name from it.
    check("etag", "etag=CAE==", true);
}

#[test]
fn an_empty_value_is_none() {
    for value in ["", "=", "=+", "=%20", "=%09+%0a"] {
        check(NAME, &format!("ifGenerationMatch{value}"), false);
    }
}

#[test]
fn another_parameter_is_none() {
    let others = [
        "",
        "&",
        "=7",
        "ifgenerationmatch=7",
        "ifGenerationMatches=7",
        "ifGeneration=7",
        "xifGenerationMatch=7",
        "q=ifGenerationMatch=7",
        "ifGenerationMatch%3D7",
        "q=1%26ifGenerationMatch=7",
        "q=1;ifGenerationMatch=7",
    ];
    for query in others {
        check(NAME, query, false);
    }
}

#[test]
fn percent_encoding_makes_no_difference() {
    for query in ["%69fGenerationMatch=7", "if%47eneration%4datch=%37", "if%47eneration%4Datch=7"] {
        check(NAME, query, true);
    }
    check("if match", "if+match=1", true);
    check("if match", "if%20match=1", true);
    check("if+match", "if%2Bmatch=1", true);
    check("größe", "gr%C3%B6%c3%9fe=1", true);
    // Not decoded twice.
    check(NAME, "%2569fGenerationMatch=7", false);
    // Malformed: it stands for itself.
    check("a%", "a%=1", true);
    check("a%4", "a%4=1", true);
    check("a%zz", "a%zz=1", true);
    check("a%4z", "a%4z=%", true);
    check("a%é", "a%é=1", true);
}

#[test]
fn of_a_repeated_one_each_must_have_a_value() {
    check(NAME, "ifGenerationMatch=7&ifGenerationMatch=8", true);
    check(NAME, "ifGenerationMatch=7&ifGenerationMatch=", false);
    check(NAME, "ifGenerationMatch&ifGenerationMatch=7", false);
    check(NAME, "if%47enerationMatch=&ifGenerationMatch=7", false);
}
