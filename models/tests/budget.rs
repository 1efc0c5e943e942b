//! The models of `src/policy/budget/loom_models.rs`.

#[cfg(redial_loom)]
#[test]
fn every_model_holds() {
    for (name, model) in redial::policy::budget::loom_models::ALL {
        println!("{name}");
        model();
    }
}

#[cfg(not(redial_loom))]
#[test]
fn models_are_built_with_loom() {
    panic!("build with RUSTFLAGS=\"--cfg redial_loom\": without it there is nothing to run");
}
