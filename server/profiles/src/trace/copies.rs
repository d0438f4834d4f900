//! The way of a copy, from the name that Kineto gives it: `Memcpy HtoD (Pageable -> Device)`.

use crate::system::{Direction, Memory, Route};

/// Reads it.
pub fn route(name: &str) -> Route {
    let mut words = name.split_whitespace();
    let direction = match words.find(|word| word.contains("to") && word.len() == 4).unwrap_or_default() {
        "HtoD" | "HtoA" => Direction::HostToDevice,
        "DtoH" | "AtoH" => Direction::DeviceToHost,
        "DtoD" | "AtoA" | "AtoD" | "DtoA" => Direction::DeviceToDevice,
        "HtoH" => Direction::HostToHost,
        "PtoP" => Direction::PeerToPeer,
        _ => Direction::Unknown,
    };
    let kinds = name.split_once('(').and_then(|(_, kinds)| kinds.trim_end_matches(')').split_once("->"));
    let (from, to) =
        kinds.map_or((Memory::Unknown, Memory::Unknown), |(from, to)| (memory(from), memory(to)));
    Route { direction, from, to }
}

fn memory(name: &str) -> Memory {
    match name.trim() {
        "Pageable" => Memory::Pageable,
        "Pinned" => Memory::Pinned,
        "Device" | "Device Static" => Memory::Device,
        "Array" => Memory::Array,
        "Managed" | "Managed Static" => Memory::Managed,
        _ => Memory::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_from_names() {
        let read = |name| {
            let Route { direction, from, to } = route(name);
            (direction, from, to)
        };
        use Direction::*;
        assert_eq!(
            read("Memcpy HtoD (Pageable -> Device)"),
            (HostToDevice, Memory::Pageable, Memory::Device)
        );
        assert_eq!(read("Memcpy DtoH (Device -> Pinned)"), (DeviceToHost, Memory::Device, Memory::Pinned));
        assert_eq!(read("Memcpy HtoD (Host -> Device)"), (HostToDevice, Memory::Unknown, Memory::Device));
        assert_eq!(read("Memcpy PtoP (Device -> Device)"), (PeerToPeer, Memory::Device, Memory::Device));
        assert_eq!(read("copy of something"), (Unknown, Memory::Unknown, Memory::Unknown));
    }
}
