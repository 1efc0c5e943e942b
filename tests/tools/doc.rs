//! `redial doc`

use crate::command::{Folder, SHOP};

#[test]
fn the_page() {
    let folder = Folder::with(&[("shop.toml", SHOP)]);
    let ended = folder.run(&["doc", "shop.toml"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
}

#[test]
fn the_page_of_a_preset() {
    let folder = Folder::with(&[("github.toml", redial::contract::Contract::preset_text("github").unwrap())]);
    let ended = folder.run(&["doc", "github.toml"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    insta::assert_snapshot!(ended.out);
}

#[test]
fn a_stale_page() {
    let folder = Folder::with(&[("shop.toml", SHOP)]);
    let page = folder.run(&["doc", "shop.toml"]).out;
    folder.write("page.md", &page);
    let check = || folder.run(&["doc", "--check", "shop.toml", "page.md"]);
    assert_eq!((check().code, check().out), (0, String::new()));
    // How a checkout ends lines makes no difference.
    folder.write("page.md", page.replace('\n', "\r\n"));
    assert_eq!(check().code, 0);
    folder.write("shop.toml", SHOP.replace("attempts  = 3", "attempts  = 2"));
    let stale = check();
    assert_eq!(stale.code, 1);
    assert!(stale.out.contains("`page.md` is not what the contract says"), "{}", stale.out);
    assert!(stale.out.contains("- **Attempts**: 3, of 2s each, within 10s\n"), "{}", stale.out);
    assert!(stale.out.contains("- **Attempts**: 2, of 2s each, within 10s\n"), "{}", stale.out);
    assert!(!stale.out.contains("Waits"), "only what differs: {}", stale.out);
    folder.write("page.md", vec![b'x'; 17 << 20]);
    assert!(check().code == 2 && check().err.contains("too large"), "{}", check().err);
    assert_eq!(folder.run(&["doc", "--check", "shop.toml", "absent.md"]).code, 2);
    assert_eq!(folder.run(&["doc", "--check", "shop.toml"]).code, 2);
    assert_eq!(folder.run(&["doc", "absent.toml"]).code, 2);
}

/// What else retries multiplies requests, and a text of a contract is no Markdown.
#[test]
fn what_a_contract_says_is_text() {
    let text = SHOP
        .replace("elsewhere = []", "elsewhere = [{ where = \"gateway\", by = \"the *mesh*\", attempts = 2 }]")
        .replace("attempts  = 3", "attempts  = { max = 3, reason = \"the mesh is shared\" }")
        .replace("fallback  = \"none\"", "fallback  = \"<b>|tomorrow|</b>\"");
    let folder = Folder::with(&[("shop.toml", &text)]);
    let ended = folder.run(&["doc", "shop.toml"]);
    let page = ended.out;
    assert!(ended.code == 0, "{}", ended.err);
    assert!(page.contains("| 6: 3, times what else retries |"), "{page}");
    assert!(page.contains(r"&lt;b>\|tomorrow\|&lt;/b>"), "{page}");
    assert!(page.contains(r"the \*mesh\* (gateway): 2 attempts"), "{page}");
}
