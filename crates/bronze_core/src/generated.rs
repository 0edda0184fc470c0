//! Code generated from the schemas by `scripts/generate`; not edited by hand.

/// Bronze, package `lakehouse.bronze.v1`.
#[allow(clippy::pedantic, unreachable_pub)]
pub mod bronze {
    include!("generated/lakehouse.bronze.v1.rs");
}

/// Silver, package `lakehouse.silver.v1`.
#[allow(clippy::pedantic, unreachable_pub)]
pub mod silver {
    include!("generated/lakehouse.silver.v1.rs");
}
