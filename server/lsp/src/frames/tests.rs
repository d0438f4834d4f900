use proptest::prelude::*;

use super::*;

/// A body, or what was wrong.
type Read = Result<String, FrameError>;

fn frame(body: &str) -> Vec<u8> {
    encode(body)
}

/// What a reader makes of `bytes`, given in pieces of `piece`; a body that does not start with `{` is rejected as no JSON.
fn read(bytes: &[u8], piece: usize) -> Vec<Result<String, FrameError>> {
    let mut reader = FrameReader::with_limit(1000);
    let mut read = Vec::new();
    for bytes in bytes.chunks(piece) {
        reader.push(bytes);
        while let Some(next) = reader.next_frame() {
            let next = next.map(|body| String::from_utf8_lossy(&body).into_owned());
            if let Ok(body) = &next
                && serde_json::from_str::<serde_json::Value>(body).is_err()
            {
                reader.reject(body.as_bytes());
                read.push(Ok(format!("no JSON: {}", body.len())));
                continue;
            }
            read.push(next);
        }
    }
    read
}

fn ok(body: &str) -> Result<String, FrameError> {
    Ok(body.to_owned())
}

#[test]
fn every_broken_stream_says_so_once_and_goes_on_at_the_next_message() {
    let good = String::from_utf8(frame("{\"good\":1}")).unwrap();
    let rows: &[(&str, String, Vec<Read>)] = &[
        ("nothing wrong", String::new(), vec![]),
        ("names in any case", "content-LENGTH:2\r\n\r\n{}".into(), vec![ok("{}")]),
        ("bare line feeds", "Content-Length: 2\n\n{}".into(), vec![ok("{}")]),
        ("another header", "X-Y: z\r\nContent-Length: 2\r\n\r\n{}".into(), vec![ok("{}")]),
        ("utf8", "Content-Type: a/b; charset=utf8\r\nContent-Length: 2\r\n\r\n{}".into(), vec![ok("{}")]),
        (
            "quoted UTF-8",
            "Content-Length: 2\r\nContent-Type: a; charset=\"UTF-8\"\r\n\r\n{}".into(),
            vec![ok("{}")],
        ),
        (
            "another charset",
            "Content-Length: 2\r\nContent-Type: a; charset=utf-16\r\n\r\n{}".into(),
            vec![Err(FrameError::Charset)],
        ),
        ("empty lines between", "\r\n\r\n".into(), vec![]),
        ("no length", "Content-Type: a\r\n\r\n{}".into(), vec![Err(FrameError::NoLength)]),
        ("negative", "Content-Length: -2\r\n\r\n{}".into(), vec![Err(FrameError::BadLength)]),
        ("no number", "Content-Length: two\r\n\r\n{}".into(), vec![Err(FrameError::BadLength)]),
        ("no digits", "Content-Length:\r\n\r\n{}".into(), vec![Err(FrameError::BadLength)]),
        ("too long", "Content-Length: 1001\r\n\r\n{}".into(), vec![Err(FrameError::TooLong)]),
        (
            "absurdly long",
            "Content-Length: 99999999999999999999999999\r\n\r\n{}".into(),
            vec![Err(FrameError::TooLong)],
        ),
        ("garbage in front", "garbage\n".into(), vec![Err(FrameError::Malformed)]),
        ("garbage on the line", "{}".into(), vec![Err(FrameError::Malformed)]),
        ("raw JSON lines", "{\"id\":1}\n{\"id\":2}\n".into(), vec![Err(FrameError::Malformed)]),
        ("a length too short", "Content-Length: 5\r\n\r\n{\"a\":1}".into(), vec![ok("no JSON: 5")]),
        ("no body", "Content-Length: 0\r\n\r\n".into(), vec![ok("no JSON: 0")]),
        ("not JSON", "Content-Length: 4\r\n\r\nnope".into(), vec![ok("no JSON: 4")]),
    ];
    for (name, bytes, expected) in rows {
        let mut expected = expected.clone();
        expected.push(ok("{\"good\":1}"));
        for piece in [1, 3, 4096] {
            assert_eq!(
                read(format!("{bytes}{good}").as_bytes(), piece),
                expected,
                "{name}, in pieces of {piece}"
            );
        }
    }
}

#[test]
fn a_length_too_long_swallows_no_later_message() {
    let good = String::from_utf8(frame("{\"good\":1}")).unwrap();
    for excess in [1, 5, 16, 20, 30] {
        let bytes = format!("Content-Length: {}\r\n\r\n{{\"a\":1}}{good}{good}", 7 + excess);
        for piece in [1, 7, 4096] {
            let read = read(bytes.as_bytes(), piece);
            assert_eq!(read[1..], [ok("{\"good\":1}"), ok("{\"good\":1}")], "{excess}: {read:?}");
        }
    }
}

#[test]
fn an_endless_header_is_given_up() {
    let mut reader = FrameReader::default();
    reader.push(&vec![b'a'; LONGEST_HEADER + 1]);
    assert_eq!(reader.next_frame(), Some(Err(FrameError::Malformed)));
    assert_eq!(reader.next_frame(), None);
    reader.push(&frame("{}"));
    assert_eq!(reader.next_frame(), Some(Ok(b"{}".to_vec())));
}

#[test]
fn a_length_reserves_nothing() {
    let mut reader = FrameReader::default();
    reader.push(format!("Content-Length: {LONGEST_BODY}\r\n\r\n{{").as_bytes());
    assert_eq!(reader.next_frame(), None);
    assert!(reader.buffer.capacity() < 1 << 16);
}

proptest! {
    #[test]
    fn good_messages_come_out_as_they_went_in(
        bodies in prop::collection::vec("[a-zA-Z0-9 é{}:\"\r\n]{0,200}", 1..8),
        piece in 1usize..300,
    ) {
        let bodies: Vec<_> = bodies.iter().map(|text| serde_json::to_string(text).unwrap()).collect();
        let bytes: Vec<u8> = bodies.iter().flat_map(|body| frame(body)).collect();
        let expected: Vec<_> = bodies.iter().map(|body| ok(body)).collect();
        prop_assert_eq!(read(&bytes, piece), expected);
    }

    #[test]
    fn any_bytes_between_cost_no_good_message(
        noise in prop::collection::vec(any::<u8>(), 0..200),
        header in prop::option::of("(Content-Length: ?[0-9x-]{0,4}\r?\n?){1,3}"),
        piece in 1usize..300,
    ) {
        let mut bytes = frame("{\"first\":1}");
        bytes.extend(&noise);
        bytes.extend(header.iter().flat_map(|text| text.bytes()));
        // A length that swallows what follows is only known as wrong once so many bytes came.
        let good: Vec<u8> = (0..400).flat_map(|_| frame("{\"good\":1}")).collect();
        bytes.extend(&good);
        let read = read(&bytes, piece);
        prop_assert_eq!(&read[0], &ok("{\"first\":1}"));
        let found = read.iter().filter(|body| **body == ok("{\"good\":1}")).count();
        prop_assert!(found >= 399, "{} of 400", found);
    }
}

#[test]
fn of_two_lengths_none_counts() {
    let good = String::from_utf8(frame("{\"good\":1}")).unwrap();
    let bytes = format!("Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}{good}{good}");
    let read = read(bytes.as_bytes(), 4096);
    assert_eq!(read[0], Err(FrameError::BadLength));
    assert_eq!(read.last(), Some(&ok("{\"good\":1}")));
}
