//! Matches of sockets and senders; targets that hand a packet to a socket.

use super::super::field::Field;
use super::super::headers::{ACK, FIN, RST, SYN};
use super::super::path_state::{Effect, PathState, Undetermined};
use super::super::steps::Action;
use super::super::value::Test;
use super::{holds, named, set};
use chainwright::nft::expr::{MetaKey, PayloadBase, SocketKey};
use chainwright::xt::Negatable;
use chainwright::xt::matches::cgroup::Cgroup;
use chainwright::xt::matches::owner::Owner;
use chainwright::xt::matches::socket::Socket;
use chainwright::xt::targets::tproxy::Tproxy;
use std::ops::RangeInclusive;

/// Tests `-m owner`: packets without a local sender match if all conditions are negated.
pub(super) fn owner(path_state: &mut PathState, owner: &Owner) -> Result<bool, Undetermined> {
    if !path_state.has_sender()? {
        let negated = |ids: &Option<Negatable<RangeInclusive<u32>>>| {
            ids.as_ref().is_none_or(|ids| ids.invert)
        };
        return Ok(owner.socket_exists != Some(true) && negated(&owner.uid) && negated(&owner.gid));
    }
    if owner.socket_exists == Some(false) {
        return Ok(false);
    }
    let mut is = |key, ids: &Option<Negatable<RangeInclusive<u32>>>| {
        holds(ids.as_ref(), |ids| {
            let range = Test::Within((*ids.start()).into(), (*ids.end()).into());
            path_state.is(Field::Meta(key), range)
        })
    };
    if !is(MetaKey::SKUID, &owner.uid)? {
        return Ok(false);
    }
    if owner.suppl_groups && owner.gid.is_some() {
        let Some(gid) = &owner.gid else {
            return Ok(true);
        };
        let range = Test::Within((*gid.value.start()).into(), (*gid.value.end()).into());
        let is = path_state.is(Field::Meta(MetaKey::SKGID), range)?
            || path_state.always(format!(
                "the sender is in a group from {} to {}",
                gid.value.start(),
                gid.value.end()
            ))?;
        return Ok(is != gid.invert);
    }
    is(MetaKey::SKGID, &owner.gid)
}

pub(super) fn cgroup(path_state: &mut PathState, cgroup: &Cgroup) -> Result<bool, Undetermined> {
    if !path_state.has_sender()? {
        return Ok(false);
    }
    match cgroup {
        Cgroup::Class(class) => {
            let is = path_state.is(Field::Meta(MetaKey::CGROUP), Test::Is(class.value.into()))?;
            Ok(is != class.invert)
        }
        Cgroup::Path(path) => {
            let is =
                path_state.always(format!("the sender is in the control group {}", path.value))?;
            Ok(is != path.invert)
        }
    }
}

pub(super) fn socket(path_state: &mut PathState, socket: Socket) -> Result<bool, Undetermined> {
    if !path_state.is(Field::HasSocket, Test::Is(1))? {
        return Ok(false);
    }
    let mut is = |key| {
        let value = path_state.socket(key, 0);
        path_state.test_value(&value, Test::Is(1))
    };
    let wildcard = !socket.contains(Socket::NOWILDCARD) && is(SocketKey::WILDCARD)?;
    let transparent = !socket.contains(Socket::TRANSPARENT) || is(SocketKey::TRANSPARENT)?;
    if wildcard || !transparent {
        return Ok(false);
    }
    if socket.contains(Socket::RESTORE_SKMARK) {
        let mark = path_state.socket(SocketKey::MARK, 0);
        set(path_state, Field::Mark, mark);
    }
    Ok(true)
}

/// Drops the packet if no socket listens.
pub(super) fn tproxy(path_state: &mut PathState, tproxy: &Tproxy) -> Result<Effect, Undetermined> {
    let port = match tproxy.port {
        0 => named(path_state, Field::DestinationPort),
        port => format!("port {port}"),
    };
    let listens = path_state.always(format!(
        "a transparent socket accepts the packet at {} {port}",
        tproxy.address
    ))?;
    if !listens {
        return Ok(Effect::Drop);
    }
    let marked = path_state
        .get(Field::Mark)
        .masked((!tproxy.mask).into(), tproxy.mark.into());
    set(path_state, Field::Mark, marked);
    path_state.record_action(Action::Other(format!(
        "handed to the socket at {} {port}",
        tproxy.address
    )));
    Ok(Effect::Accept)
}

/// Applies `-j SYNPROXY`: answers the first packet, and takes the reply to the answer.
pub(super) fn synproxy(path_state: &mut PathState) -> Result<Effect, Undetermined> {
    if path_state.header(PayloadBase::TRANSPORT, 13, 1)?.is_none() {
        return Ok(Effect::Drop);
    }
    let flags = |mask, value| Test::Masked { mask, value };
    if path_state.is(Field::TcpFlags, flags(SYN | ACK | FIN | RST, SYN))? {
        return Ok(Effect::Stolen("answered by synproxy".to_owned()));
    }
    if path_state.is(Field::TcpFlags, flags(SYN | ACK | FIN | RST, ACK))? {
        return Ok(
            match path_state.always("it answers a packet from SYNPROXY")? {
                true => Effect::Stolen("SYNPROXY opens its connection".to_owned()),
                false => Effect::Drop,
            },
        );
    }
    Ok(Effect::Continue)
}
