//! A contract that is read again, as it is swapped.

use std::{fs, os::unix::fs::symlink, time::Duration};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use redial::{
    RetryLayer,
    contract::Contract,
    testing::{self, Reply},
};
use tower::{Layer, ServiceExt};

use crate::support::*;

async fn requests(contract: &Contract) -> usize {
    let service = testing::service([503; 9].map(Reply::status));
    let request = Request::get("https://api.shop.example/").body(Full::<Bytes>::default()).unwrap();
    let _ = RetryLayer::new(contract.clone()).layer(service.clone()).oneshot(request).await;
    service.seen().requests.len()
}

async fn while_watched(contract: &Contract, test: impl Future<Output = ()>) {
    tokio::select! {
        _ = contract.clone().watch(Duration::from_secs(1)) => unreachable!("it never ends"),
        () = test => {}
    }
}

fn attempts(count: u32) -> String {
    // The calls all fail, and a budget is kept when the file is read again: one that is large.
    SHOP.replace("attempts  = 3", &format!("attempts  = {count}\nbudget = {{ setting = \"aws\" }}"))
}

/// As Kubernetes swaps a ConfigMap: `shop.toml -> ..data/shop.toml`, `..data -> ..2026`, renamed over.
#[tokio::test(start_paused = true)]
async fn a_config_map() {
    let folder = Folder::new();
    let at = |name: &str| folder.path().join(name);
    folder.write("..one/shop.toml", &attempts(3));
    folder.write("..two/shop.toml", &attempts(2));
    symlink("..one", at("..data")).unwrap();
    symlink("..data/shop.toml", at("shop.toml")).unwrap();
    for path in [at("shop.toml"), folder.path().to_owned()] {
        symlink("..one", at("..tmp")).unwrap();
        fs::rename(at("..tmp"), at("..data")).unwrap();
        let contract = Contract::load([path]).unwrap();
        while_watched(&contract, async {
            assert_eq!(requests(&contract).await, 3);
            symlink("..two", at("..tmp")).unwrap();
            fs::rename(at("..tmp"), at("..data")).unwrap();
            tokio::time::sleep(Duration::from_secs(4)).await;
            assert_eq!(requests(&contract).await, 2);
        })
        .await;
    }
}

/// Deleted, then there again, as it was and changed.
#[tokio::test(start_paused = true)]
async fn deleted_and_back() {
    let folder = Folder::new();
    let file = folder.write("shop.toml", &attempts(3));
    let contract = Contract::load([&file]).unwrap();
    while_watched(&contract, async {
        for count in [3, 2, 2, 1] {
            fs::remove_file(&file).unwrap();
            tokio::time::sleep(Duration::from_secs(4)).await;
            let _ = fs::create_dir(&file);
            tokio::time::sleep(Duration::from_secs(4)).await;
            let _ = fs::remove_dir(&file);
            folder.write("shop.toml", &attempts(count));
            tokio::time::sleep(Duration::from_secs(4)).await;
            assert_eq!(requests(&contract).await, count as usize);
        }
    })
    .await;
}

/// The first half of a file may be a whole contract, which lacks what stood in the second: written slowly, it must not
/// be in force though a writer stops between the ticks.
#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_there_yet_is_told_from_one_that_is_empty() {
    let folder = Folder::new();
    let file = folder.write("shop.toml", &attempts(2));
    let contract = Contract::load([&file]).unwrap();
    while_watched(&contract, async {
        for text in ["", "format = 1\n", "\u{feff}"] {
            fs::write(&file, text).unwrap();
            tokio::time::sleep(Duration::from_secs(10)).await;
            assert_eq!(requests(&contract).await, 2, "{text:?} is no contract: the one before stays in force");
        }
    })
    .await;
}
