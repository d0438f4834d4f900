//! Which function answers which call.

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call, Operation};
use super::{
    advice, capture, copies, events, graph_calls, launch, limits, memory_calls, modules, occupancy, pools,
    properties, streams,
};

/// Answers a call. `Hello` was answered when the connection was made.
pub(super) fn answer(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    use Operation as O;
    match call.operation {
        O::Hello | O::Continue => Err(Code::INVALID_VALUE),
        O::Missing => {
            context.shared.report().missing.insert(call.text());
            Ok(Answer::done())
        }
        O::Image => Ok(modules::image(context, call)),
        O::Function => Ok(modules::function(context, call)),
        O::Variable => Ok(modules::variable(context, call)),
        O::ManagedVariable => modules::managed_variable(context, call),
        O::Symbol => modules::symbol(context, call),
        O::Parameters => launch::parameters(context, call),
        O::Launch => launch::launch(context, call),
        O::FunctionCheck => launch::check(context, call),
        O::FunctionName => launch::name(context, call),
        O::FunctionAttributes => launch::attributes(context, call),
        O::FunctionSetAttribute => launch::set_attribute(context, call),
        O::HostFunction => streams::host_function(context, call),
        O::OccupancyBlocks => occupancy::blocks(context, call),
        O::OccupancyShared => occupancy::shared(context, call),
        O::OccupancyClusters => occupancy::clusters(context, call),
        O::OccupancyClusterSize => occupancy::cluster_size(context, call),
        O::Malloc => memory_calls::malloc(context, call),
        O::MallocPitch => memory_calls::malloc_pitch(context, call),
        O::MallocManaged => memory_calls::malloc_managed(context, call),
        O::Free => memory_calls::free(context, call),
        O::HostAlloc => memory_calls::host_alloc(context, call),
        O::FreeHost => memory_calls::free_host(context, call),
        O::HostRegister => memory_calls::host_register(context, call),
        O::HostUnregister => memory_calls::host_unregister(context, call),
        O::HostDevicePointer => memory_calls::host_device_pointer(context, call),
        O::HostFlags => memory_calls::host_flags(context, call),
        O::MemoryInfo => Ok(memory_calls::info(context)),
        O::PointerAttributes => Ok(memory_calls::pointer_attributes(context, call)),
        O::Attach => memory_calls::attach(context, call),
        O::Advise => advice::advise(context, call),
        O::RangeAttribute => advice::attribute(context, call),
        O::MallocAsync => pools::malloc(context, call),
        O::FreeAsync => pools::free(context, call),
        O::PoolCreate => Ok(pools::create(context)),
        O::PoolDestroy => pools::destroy(context, call),
        O::PoolOfDevice => pools::of_device(context, call),
        O::PoolSet => pools::set(context, call),
        O::PoolGet => pools::get(context, call),
        O::PoolSetAttribute => pools::set_attribute(context, call),
        O::Copy => copies::copy(context, call),
        O::Fill => copies::fill(context, call),
        O::StreamCreate => streams::create(context, call),
        O::StreamDestroy => streams::destroy(context, call),
        O::StreamSynchronize | O::StreamQuery => streams::synchronize(context, call),
        O::StreamWait => streams::wait(context, call),
        O::StreamGet => streams::get(context, call),
        O::EventCreate => events::create(context, call),
        O::EventDestroy => events::destroy(context, call),
        O::EventRecord => events::record(context, call),
        O::EventSynchronize | O::EventQuery => events::synchronize(context, call),
        O::EventElapsed => events::elapsed(context, call),
        O::CaptureBegin => capture::begin(context, call),
        O::CaptureEnd => capture::end(context, call),
        O::CaptureState => capture::state(context, call),
        O::CaptureExchangeMode => Ok(capture::exchange_mode(context, call)),
        O::GraphCreate => graph_calls::create(context, call),
        O::GraphDestroy => graph_calls::destroy(context, call),
        O::GraphDestroyNode => graph_calls::destroy_node(context, call),
        O::GraphAdd => graph_calls::add(context, call),
        O::GraphSet => graph_calls::set(context, call),
        O::GraphNodeType => graph_calls::node_type(context, call),
        O::GraphNodeChild => graph_calls::child(context, call),
        O::GraphFindInClone => graph_calls::find_in_clone(context, call),
        O::GraphList => graph_calls::list(context, call),
        O::GraphLink => graph_calls::link(context, call),
        O::GraphInstantiate => graph_calls::instantiate(context, call),
        O::GraphExecDestroy => graph_calls::exec_destroy(context, call),
        O::GraphExecFlags => graph_calls::exec_flags(context, call),
        O::GraphExecUpdate => graph_calls::exec_update(context, call),
        O::GraphLaunch => graph_calls::launch(context, call),
        O::GraphSetEnabled => graph_calls::set_enabled(context, call),
        O::GraphGetEnabled => graph_calls::get_enabled(context, call),
        O::DeviceCheck => limits::check_device(call),
        O::DeviceProperties => properties::properties(context, call),
        O::DeviceAttribute => properties::attribute_call(context, call),
        O::DeviceSynchronize => {
            context.check_any_capture()?;
            context.settle_all()?;
            Ok(Answer::done())
        }
        O::DeviceReset => {
            context.idle()?;
            let actions = context.reset();
            Ok(Answer::done().with(actions))
        }
        O::DeviceSetFlags => limits::set_flags(context, call),
        O::DeviceGetFlags => Ok(Answer::results([u64::from(context.flags)])),
        O::LimitGet => limits::get(context, call),
        O::LimitSet => limits::set(context, call),
        O::Profiler => Ok(Answer::done()),
    }
}
