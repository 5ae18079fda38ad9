use super::super::*;
use super::*;

#[test]
fn moved_slice_changes_both_services() {
    let mut services = Services::new();
    let slice = |service: &str| EndpointSlice {
        name: ObjectName::new("default", "slice"),
        service: service.into(),
        endpoints: vec![Endpoint::new([10, 244, 0, 1].into())],
        ports: Vec::new(),
    };
    services.set_slice(slice("a"));
    assert_eq!(services.take_changed().count(), 1);
    services.set_slice(slice("a"));
    assert_eq!(services.changed().count(), 0);
    services.set_slice(slice("b"));
    let mut changed: Vec<_> = services.take_changed().collect();
    changed.sort();
    let names = ["a", "b"].map(|name| ObjectName::new("default", name));
    assert_eq!(changed, names);
    assert_eq!(services.slices(&names[0]).count(), 0);
    assert_eq!(services.slices(&names[1]).count(), 1);
    services.remove_slice(&ObjectName::new("default", "slice"));
    assert!(services.services.is_empty() && services.slices.is_empty());
}
