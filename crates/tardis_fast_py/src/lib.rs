//! The extension module `tardis_fast._core`: turns Python arguments into Rust calls and back.

mod archive;
mod bell;
mod columns;
mod computer;
mod encoder;
mod errors;
mod publisher;
mod rows;
mod sample;
mod session;
mod source;

use bronze_core::PayloadCase;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The Rust core of `tardis_fast`.
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PAYLOAD_CASES", PyTuple::new(py, PayloadCase::ALL.map(PayloadCase::name))?)?;
    module.add_class::<encoder::BronzeEncoder>()?;
    module.add_function(wrap_pyfunction!(encoder::decode_to_json, module)?)?;
    module.add_function(wrap_pyfunction!(columns::events_to_batch, module)?)?;
    module.add_function(wrap_pyfunction!(columns::events_by_case, module)?)?;
    module.add_function(wrap_pyfunction!(columns::batch_to_events, module)?)?;
    module.add_function(wrap_pyfunction!(columns::bronze_schema, module)?)?;
    module.add_class::<rows::EventBatches>()?;
    module.add_class::<rows::RowReader>()?;
    module.add_function(wrap_pyfunction!(rows::events_to_checked_batch, module)?)?;
    module.add_function(wrap_pyfunction!(rows::event_keys, module)?)?;
    module.add_function(wrap_pyfunction!(rows::dataset_columns, module)?)?;
    module.add_class::<publisher::Publisher>()?;
    module.add_class::<publisher::DeadLetterReader>()?;
    module.add_function(wrap_pyfunction!(publisher::check_buses, module)?)?;
    module.add_function(wrap_pyfunction!(publisher::check_options, module)?)?;
    module.add_class::<computer::Computer>()?;
    module.add_class::<archive::Archive>()?;
    module.add_class::<bell::Bell>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Chunk>()?;
    module.add_function(wrap_pyfunction!(session::filters_of_subscription, module)?)?;
    module.add_function(wrap_pyfunction!(session::is_subscribable, module)?)?;
    module.add_class::<sample::SampleMarket>()?;
    module.add_class::<sample::SampleStream>()?;
    errors::register(module)
}
