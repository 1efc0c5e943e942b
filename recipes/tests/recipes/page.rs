//! The page shows what runs here.

const SOURCES: [&str; 5] = [
    include_str!("../../src/async_openai.rs"),
    include_str!("../../src/aws.rs"),
    include_str!("../../src/google.rs"),
    include_str!("../../src/kube.rs"),
    include_str!("../../src/octocrab.rs"),
];

#[test]
fn every_item_on_the_page_is_one_of_a_recipe() {
    let page = include_str!("../../../docs/sdks.md");
    let blocks: Vec<_> = page.split("```rust,ignore\n").skip(1).filter_map(|block| block.split_once("\n```")).collect();
    assert_eq!(blocks.len(), SOURCES.len());
    for (block, _) in blocks {
        for item in block.split("\n\n") {
            assert!(SOURCES.iter().any(|source| source.contains(item)), "in no recipe:\n{item}");
        }
    }
}
