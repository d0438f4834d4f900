//! One process and its calls.

use std::io::{self, BufReader, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::context::{Context, Shared};
use super::errors::Code;
use super::protocol::{Answer, Call, Operation};
use crate::memory::LENGTH;

/// Answers calls until the process has gone. Where the connection breaks, the process ends or has ended: there is nobody to
/// tell.
pub(super) fn serve(stream: UnixStream, shared: &Arc<Shared>) {
    if let Err(error) = calls(stream, shared) {
        tracing::debug!("the connection to the program broke: {error}");
    }
}

fn calls(mut stream: UnixStream, shared: &Arc<Shared>) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let Some(hello) = Call::read(&mut reader)?.filter(|call| call.operation == Operation::Hello) else {
        return Ok(());
    };
    let version = hello.small(0);
    shared.report().runtime = Some(version);
    let memory = &shared.memory;
    Answer::results([memory.base(), LENGTH]).write(0, &[], &[], &mut stream)?;
    send_file(&stream, memory.file())?;
    let mut context = Context::new(Arc::clone(shared), version);
    while let Some(call) = Call::read(&mut reader)? {
        let (result, printed) = context.answer(&call);
        let (answer, error) = match result {
            Ok(answer) => (answer, 0),
            Err(Code(error)) => (Answer::done(), error),
        };
        let complaints = std::mem::take(&mut context.complaints);
        answer.write(error, &printed, complaints.as_bytes(), &mut stream)?;
    }
    Ok(())
}

/// Sends a descriptor along with one byte.
fn send_file(stream: &UnixStream, file: BorrowedFd<'_>) -> io::Result<()> {
    const SPACE: usize = 64;
    #[repr(align(8))]
    struct Control([u8; SPACE]);
    (&*stream).flush()?;
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; SPACE]);
    let raw = file.as_raw_fd();
    let length = size_of_val(&raw);
    // SAFETY: `msghdr` is a plain C structure; every field that matters is set below.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    let bytes = u32::try_from(length).map_err(io::Error::other)?;
    // SAFETY: a plain computation.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as _;
    // SAFETY: the control buffer is aligned and has room for one header and one descriptor.
    let sent = unsafe {
        let head = libc::CMSG_FIRSTHDR(&raw const message);
        (*head).cmsg_level = libc::SOL_SOCKET;
        (*head).cmsg_type = libc::SCM_RIGHTS;
        (*head).cmsg_len = libc::CMSG_LEN(bytes) as _;
        std::ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), libc::CMSG_DATA(head), length);
        libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent == 1 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
