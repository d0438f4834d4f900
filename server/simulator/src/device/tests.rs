use super::attributes::attribute;
use super::*;

#[test]
fn a_device_is_found_by_name() {
    assert_eq!(Device::named("H200").map(|device| device.product), Some("NVIDIA H200"));
    assert_eq!(Device::named("h2"), None);
}

#[test]
fn rows_are_whole() {
    for device in &DEVICES {
        assert_eq!(device.capability, device.limits.capability, "{}", device.name);
        assert!(device.limits.shared_optin <= device.limits.shared);
        for number in [1, 16, 39, 75, 81, 97, 106] {
            assert!(attribute(device, number).is_some_and(|value| value > 0), "{} {number}", device.name);
        }
        assert_eq!(attribute(device, 0), None);
        assert_eq!(attribute(device, 148), None);
    }
}

/// Peak bandwidth against the data sheets, in TB/s.
#[test]
fn bandwidth_is_that_of_the_data_sheet() {
    for (name, sheet) in [
        ("h200", 4.8),
        ("h100", 3.35),
        ("a100", 2.04),
        ("a10g", 0.6),
        ("rtx4090", 1.01),
        ("l4", 0.30),
        ("rtxpro6000", 1.79),
        ("b200", 7.67),
        ("v100", 0.9),
        ("t4", 0.32),
    ] {
        let bandwidth = Device::named(name).unwrap().bandwidth() / 1e12;
        assert!((bandwidth / sheet - 1.0).abs() < 0.02, "{name}: {bandwidth}");
    }
}

/// Each field is named once among the sources, each source is a document, and each document is used.
#[test]
fn every_number_says_where_it_is_from() {
    let mut used: Vec<&str> = Vec::new();
    for device in &DEVICES {
        // Written out, so that a new field has to be thought of here.
        let Device {
            name,
            product: _,
            capability: _,
            multiprocessors: _,
            memory: _,
            clock: _,
            memory_clock: _,
            bus_width: _,
            l2: _,
            l2_parts: _,
            tensor: _,
            persisting_l2: _,
            copy_engines: _,
            ecc: _,
            limits,
            sources,
        } = device;
        let fields = [
            "capability",
            "multiprocessors",
            "memory",
            "clock",
            "memory_clock",
            "bus_width",
            "l2",
            "l2_parts",
            "tensor",
            "persisting_l2",
            "copy_engines",
            "ecc",
        ];
        used.extend(named_once(name, sources, &fields));
        let Limits {
            capability: _,
            threads: _,
            blocks: _,
            unified: _,
            shared: _,
            shared_optin: _,
            shared_reserved: _,
            shared_unit: _,
            single_to_double: _,
            lanes: _,
            sources,
        } = limits;
        let fields = [
            "capability",
            "threads",
            "blocks",
            "unified",
            "shared",
            "shared_optin",
            "shared_reserved",
            "shared_unit",
            "single_to_double",
            "lanes",
        ];
        used.extend(named_once(name, sources, &fields));
    }
    for source in SOURCES {
        assert!(used.contains(&source.title), "nothing is from {}", source.title);
    }
}

fn named_once(device: &str, origins: &[Origin], fields: &[&str]) -> Vec<&'static str> {
    let mut named: Vec<&str> = origins.iter().flat_map(|origin| origin.fields).copied().collect();
    let mut expected = fields.to_vec();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected, "{device}");
    for origin in origins {
        assert!(SOURCES.contains(&origin.source) && !origin.how.is_empty(), "{device}: {origin:?}");
        // Without a document, only what no estimate is made of.
        let guessed = origin.source.address.is_empty();
        assert!(
            !guessed || origin.fields.iter().all(|field| matches!(*field, "copy_engines" | "persisting_l2")),
            "{device}"
        );
    }
    origins.iter().map(|origin| origin.source.title).collect()
}

/// Rates that follow from the rows against the data sheets: TFLOPS of f32, and of dense f16 on tensor cores. The sheets of Hopper and Blackwell
/// count tensor cores at a lower clock (1.83 and 1.86 GHz) than the highest.
#[test]
fn rates_are_those_of_the_data_sheets() {
    for (name, single, half, clock) in [
        ("v100", 15.7, 125.0, None),
        ("a100", 19.5, 312.0, None),
        ("h100", 67.0, 989.4, Some(1.83)),
        ("h200", 67.0, 989.4, Some(1.83)),
        ("l4", 30.3, 121.0, None),
        ("rtx4090", 82.6, 165.2, None),
        ("rtxpro6000", 125.0, 500.0, None),
        ("b200", 75.0, 2250.0, Some(1.86)),
    ] {
        let device = Device::named(name).unwrap();
        let gigahertz = clock.unwrap_or(f64::from(device.clock) / 1e6);
        let products = 2e-3 * f64::from(device.tensor) * f64::from(device.multiprocessors) * gigahertz;
        let near = |rate: f64, sheet: f64| (rate / sheet - 1.0).abs() < 0.01;
        assert!(near(2.0 * device.single() / 1e12, single), "{name}: {}", device.single());
        assert!(near(products, half), "{name}: {products}");
    }
}

#[test]
fn shared_memory_takes_the_next_size_that_there_is() {
    let next = |kib: u32| CARVEOUTS.into_iter().find(|&size| size >= kib);
    // Hopper Tuning Guide: 0, 8, 16, 32, 64, 100, 132, 164, 196 and 228 KB.
    assert_eq!([1, 65, 100, 165, 197].map(next), [Some(8), Some(100), Some(100), Some(196), Some(228)]);
    assert_eq!(next(229), None);
}
