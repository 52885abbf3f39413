//! Events, for hosts with an event loop.

use std::ffi::c_void;
use std::sync::Arc;

use super::error::dsh_error_t;
use super::executor::dsh_executor_t;
use super::out::Descriptor;
use super::status::dsh_status_t;
use crate::{Event, EventKind};

/// What has happened to a background process. What it announces can be read when the event is there.
pub type dsh_event_kind_t = u32;
/// No event waits.
pub const DSH_EVENT_NONE: dsh_event_kind_t = 0u32;
/// There is new output, or a stream has ended.
pub const DSH_EVENT_OUTPUT: dsh_event_kind_t = 1u32;
/// The shell has exited.
pub const DSH_EVENT_EXIT: dsh_event_kind_t = 2u32;
/// The process has settled: its exit and its output are final.
pub const DSH_EVENT_SETTLED: dsh_event_kind_t = 3u32;
/// Nothing of the tree is alive any more.
pub const DSH_EVENT_QUIESCENT: dsh_event_kind_t = 4u32;

/// A hint that something has happened. At most one waits per process and kind, so none is ever dropped.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct dsh_event_t {
    /// `sizeof(dsh_event_t)`, set by the caller.
    pub size: usize,
    /// The process, see `dsh_process_info_t.process_id`.
    pub process_id: u64,
    /// The request's tag.
    pub tag: u64,
    /// What has happened: `DSH_EVENT_...`.
    pub kind: dsh_event_kind_t,
    /// 0.
    pub reserved: u32,
}

extensible!(dsh_event_t);

/// A descriptor that is readable while events wait, for poll loops: the read end of a non-blocking, close-on-exec pipe.
/// It stays the executor's: don't read from it and don't close it; dsh_executor_free() does. Events are kept from
/// the first call on. `*fd` is -1 after an error.
///
/// `DSH_E_SYSTEM` when there is no descriptor left. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_event_fd(
    executor: Option<&dsh_executor_t>,
    fd: *mut i32,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let fd = Descriptor(fd);
    border!(error, on executor, out fd, { executor.event_fd()? })
}

/// What dsh_executor_wake() is to call: `user_data` comes back in it.
pub type dsh_wake_t = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// What frees `user_data`, once nothing is called with it any more.
pub type dsh_destroy_t = Option<unsafe extern "C" fn(user_data: *mut c_void)>;

/// Has `wake(user_data)` called whenever events begin to wait, in place of the descriptor or beside it: for hosts
/// that are woken by a call. Replaces what was set before; NULL ends it. Events are kept from the first call on.
///
/// `wake` is called on a thread of the library, with all signals blocked, now and then on two at a time; and once during
/// this call, on this thread, when events wait already. It must return soon, and may call dsh_next_event() and nothing
/// else of the library. When it does not take the events itself, take them until none is left: it is called again only
/// when the first event after that comes.
///
/// `destroy(user_data)` (may be NULL) is called exactly once: when `wake` was replaced or the executor is freed, and no
/// call of it is under way; on the thread of that call or on one of the library. Also when this call fails, before it
/// returns. Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_executor_wake(
    executor: Option<&dsh_executor_t>,
    wake: dsh_wake_t,
    user_data: *mut c_void,
    destroy: dsh_destroy_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    let callback = Callback { wake, user_data, destroy };
    border!(error, on executor, { executor.set_wake(callback.into_wake())? })
}

/// A function of the host, and what belongs to it.
struct Callback {
    wake: dsh_wake_t,
    user_data: *mut c_void,
    destroy: dsh_destroy_t,
}

// SAFETY: the header tells the host on which threads its functions are called, and to pass data that bears it.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    fn into_wake(self) -> Option<Arc<dyn Fn() + Send + Sync>> {
        self.wake?;
        Some(Arc::new(move || self.call()))
    }

    fn call(&self) {
        if let Some(wake) = self.wake {
            // SAFETY: the host gave the function for just this, with this data, and it has not been destroyed.
            unsafe { wake(self.user_data) }
        }
    }
}

impl Drop for Callback {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: as above; a value is dropped once, and nobody calls it any more.
            unsafe { destroy(self.user_data) }
        }
    }
}

/// Takes the next event that waits; `kind` is `DSH_EVENT_NONE` when none does. When the descriptor was readable, call
/// it until then. Freeing the handle of a process takes back what waits for it.
///
/// Any thread; does not block.
#[no_mangle]
pub unsafe extern "C" fn dsh_next_event(
    executor: Option<&dsh_executor_t>,
    event: *mut dsh_event_t,
    error: *mut *mut dsh_error_t,
) -> dsh_status_t {
    border!(error, on executor, out event, { executor.next_event()?.into() })
}

impl From<Option<Event>> for dsh_event_t {
    fn from(event: Option<Event>) -> dsh_event_t {
        dsh_event_t {
            size: size_of::<dsh_event_t>(),
            process_id: event.map_or(0, |event| event.process_id),
            tag: event.map_or(0, |event| event.tag),
            kind: event.map_or(DSH_EVENT_NONE, |event| match event.kind {
                EventKind::Output => DSH_EVENT_OUTPUT,
                EventKind::Exit => DSH_EVENT_EXIT,
                EventKind::Settled => DSH_EVENT_SETTLED,
                EventKind::Quiescent => DSH_EVENT_QUIESCENT,
            }),
            reserved: 0,
        }
    }
}
