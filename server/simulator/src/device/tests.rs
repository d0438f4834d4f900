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
