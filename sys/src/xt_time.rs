//! `linux/netfilter/xt_time.h`: the match `time`.

use crate::abi::abi;

abi! {
    header "linux/netfilter/xt_time.h";

    constants {
        /// Flags of the match ([`xt_time_info::flags`]).
        "enum XT_TIME_* (flags)": u8 {
            /// Times are in the kernel's time zone, not UTC.
            XT_TIME_LOCAL_TZ = 1 << 0;
            /// A time of day that starts after its end continues into the next day.
            XT_TIME_CONTIGUOUS = 1 << 1;
        }

        /// All flags.
        "#define XT_TIME_ALL_FLAGS": u8 {
            XT_TIME_ALL_FLAGS = 0x3;
        }

        /// All days of a month.
        "enum XT_TIME_ALL_MONTHDAYS": u32 {
            XT_TIME_ALL_MONTHDAYS = 0xffff_fffe;
        }

        /// All days of a week.
        "enum XT_TIME_ALL_WEEKDAYS": u8 {
            XT_TIME_ALL_WEEKDAYS = 0xfe;
        }

        /// The whole day, in seconds since midnight.
        "enum XT_TIME_*_DAYTIME": u32 {
            /// Its first second.
            XT_TIME_MIN_DAYTIME = 0;
            /// Its last second.
            XT_TIME_MAX_DAYTIME = 24 * 60 * 60 - 1;
        }
    }

    structs {
        /// Data of the match `time`, revision 0.
        struct xt_time_info {
            /// Start of the period, in seconds since 1970, host byte order.
            field date_start: u32,
            /// End of the period, in seconds since 1970, host byte order.
            field date_stop: u32,
            /// First time of the day, in seconds since midnight, host byte order.
            field daytime_start: u32,
            /// Last time of the day, in seconds since midnight, host byte order.
            field daytime_stop: u32,
            /// Days of the month: bit 1 for the first to bit 31, host byte order.
            field monthdays_match: u32,
            /// Days of the week: bit 1 for Monday to bit 7 for Sunday.
            field weekdays_match: u8,
            /// `XT_TIME_*`.
            field flags: u8,
            pad __pad: [u8; 2],
        }
    }
}
