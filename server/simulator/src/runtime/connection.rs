//! One process and its calls.

use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use super::context::{Context, Shared};
use super::errors::Code;
use super::helper::Helper;
use super::processor::Processor;
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
    Answer::results([memory.base(), LENGTH]).write(0, &[], &mut stream)?;
    let (helper, theirs) = Helper::new()?;
    send_files(&stream, [memory.file(), theirs.as_fd()])?;
    drop(theirs);
    let processor = Processor::start(Arc::clone(shared), helper);
    let context = Context::new(Arc::clone(&processor), version, hello.argument(2) != 0);
    let served = answers(context, &mut reader, &mut stream);
    processor.finish();
    served
}

fn answers(mut context: Context, reader: &mut impl Read, stream: &mut UnixStream) -> io::Result<()> {
    while let Some(call) = Call::read(reader)? {
        let (result, printed) = context.answer(&call);
        let (answer, error) = match result {
            Ok(answer) => (answer, 0),
            Err(Code(error)) => (Answer::done(), error),
        };
        answer.write(error, &printed, stream)?;
    }
    Ok(())
}

/// Sends descriptors along with one byte.
fn send_files(stream: &UnixStream, files: [BorrowedFd<'_>; 2]) -> io::Result<()> {
    const SPACE: usize = 64;
    #[repr(align(8))]
    struct Control([u8; SPACE]);
    (&*stream).flush()?;
    let mut byte = [0_u8];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut control = Control([0; SPACE]);
    let raw = files.map(|file| file.as_raw_fd());
    let length = size_of_val(&raw);
    // SAFETY: `msghdr` is a plain C structure; every field that matters is set below.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    let bytes = u32::try_from(length).map_err(io::Error::other)?;
    // SAFETY: a plain computation.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(bytes) } as _;
    // SAFETY: the control buffer is aligned and has room for one header and the descriptors.
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
