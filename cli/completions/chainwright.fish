# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_chainwright_global_optspecs
    string join \n netns= json nft-version= h/help V/version
end

function __fish_chainwright_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_chainwright_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_chainwright_using_subcommand
    set -l cmd (__fish_chainwright_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c chainwright -n "__fish_chainwright_needs_command" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_needs_command" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_needs_command" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_needs_command" -s V -l version -d 'Print version'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "get" -d 'List tables, chains, rules, sets or elements, or the whole ruleset'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "exists" -d 'Look up chains by name, without a listing'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "diff" -d 'Show the changes since a file was written or a moment was recorded, or between two'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "graph" -d 'Show the jumps between chains, as a tree or a graph'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "trace" -d 'Show the path of a packet through the rules'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "explain" -d 'Explain a rule, a chain or a service in English'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "report" -d 'Write a page about a ruleset'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "check" -d 'Find present and future problems in the tables'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "apply" -d 'Apply a file atomically: nft\'s language, libnftables\' JSON, output of iptables-save, or a snapshot'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "snapshot" -d 'Save the ruleset of nf_tables in a file'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "delete" -d 'Delete leftover chains, and all rules that jump to them'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "convert" -d 'Convert rules between iptables and nft; with --in-place, move tables to the other backend'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "confirm" -d 'Keep the change that waits for a confirmation'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "top" -d 'Show the rules, chains or sets that count the most packets'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "metrics" -d 'Print counters, sizes and totals for Prometheus, or serve them over HTTP'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "watch" -d 'Print changes, the rules that packets traverse, or those that drop packets, as they happen'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "record" -d 'Record every change of nf_tables, and the process that made it'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "log" -d 'Show recorded transactions, one per line'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "show" -d 'Show a recorded transaction: what it changed, and the process that made it'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "blame" -d 'Show the recorded transaction that added each rule of a chain, or each element of a set'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "bisect" -d 'Find the recorded transaction that changed the outcome of a packet'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "kube" -d 'Detect Kubernetes\' backend; create, check, remove or guard its chains'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "multicall" -d 'Make links with the names of nft and of iptables\' programs'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "man" -d 'Print a manual page'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "nft" -d 'Behave like the program `nft`, also through a link with the name nft'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables" -d 'Behave like iptables: change or list a table of IPv4'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables-save" -d 'Behave like iptables-save: print tables of IPv4 as text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables-restore" -d 'Behave like iptables-restore: restore tables of IPv4 from text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables" -d 'Behave like ip6tables: change or list a table of IPv6'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables-save" -d 'Behave like ip6tables-save: print tables of IPv6 as text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables-restore" -d 'Behave like ip6tables-restore: restore tables of IPv6 from text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -s h -l help -d 'Print help'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "tables" -d 'List tables, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "chains" -d 'List chains, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "rules" -d 'List rules, by chain'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "sets" -d 'List sets and maps, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "elements" -d 'List the elements of sets and maps'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "ruleset" -d 'Print the ruleset in nft\'s language, as libnftables\' JSON, or in the format of iptables-save'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "pending" -d 'Show the change that waits for a confirmation'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and not __fish_seen_subcommand_from tables chains rules sets elements ruleset pending help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -s o -l output -d 'Format of the output' -r -f -a "table\t'one line for each object'
wide\t'with handles, references, counters and comments'
name\t'only the names'
json\t'the same as --json'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l rules -d 'Show the number of rules of each table'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from tables" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -s o -l output -d 'Format of the output' -r -f -a "table\t'one line for each object'
wide\t'with handles, references, counters and comments'
name\t'only the names'
json\t'the same as --json'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l rules -d 'Show the number of rules of each chain'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from chains" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l bytecode -d 'Print what `nft --debug=netlink list` (nft 1.0.6) prints before the listing itself: for each table of nf_tables its sets with their elements, then its rules, one expression per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from rules" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -s o -l output -d 'Format of the output' -r -f -a "table\t'one line for each object'
wide\t'with handles, references, counters and comments'
name\t'only the names'
json\t'the same as --json'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l anonymous -d 'Also list anonymous sets, which belong to a single rule'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l elements -d 'Also list the elements'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from sets" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l contains -d 'Print only the elements that contain this key, in nft\'s language: 10.1.2.3, 443, \'10.1.2.3 . tcp . 443\'' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -s o -l output -d 'Format of the output' -r -f -a "table\t'one line for each object'
wide\t'with handles, references, counters and comments'
name\t'only the names'
json\t'the same as --json'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l anonymous -d 'Also list anonymous sets, which belong to a single rule'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from elements" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s o -l output -d 'Format of the output' -r -f -a "nft\t'nft\'s language'
nft-json\t'libnftables\' JSON, like `nft -j`'
iptables\t'the format of iptables-save'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s j -d 'The same as -o nft-json'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s c -l counters -d 'With -o iptables: also print the counters of rules; those of policies are always printed'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s a -l handles -d 'Show the handles assigned by the kernel'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s s -l stateless -d 'Omit the state of stateful objects, such as counters'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s n -l numeric -d 'Show all named values as numbers: priorities, protocols, times (in seconds), and all others'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s y -l numeric-priority -d 'Show priorities of chains as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s p -l numeric-protocol -d 'Show protocols above IP as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s T -l numeric-time -d 'Show times in seconds'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s u -l guid -d 'Show users and groups by name'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s S -l service -d 'Show ports by their names in /etc/services'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l terse -d 'Omit the elements of sets'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from ruleset" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from pending" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from pending" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from pending" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from pending" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "tables" -d 'List tables, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "chains" -d 'List chains, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "rules" -d 'List rules, by chain'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "sets" -d 'List sets and maps, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "elements" -d 'List the elements of sets and maps'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "ruleset" -d 'Print the ruleset in nft\'s language, as libnftables\' JSON, or in the format of iptables-save'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "pending" -d 'Show the change that waits for a confirmation'
complete -c chainwright -n "__fish_chainwright_using_subcommand get; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand exists" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l tries -d 'Maximum number of packets to try' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l counters -d 'Also compare counters, quotas and times of last use'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l bytecode -d 'Show rules that iptables cannot express as bytecode, one pair of brackets per expression, instead of in nft\'s syntax'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l behavior -d 'Show packets that the rulesets treat differently, instead of changes. The packets use values from the rules'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l format -d 'Output format' -r -f -a "text\t'trees of lines'
dot\t'Graphviz'
mermaid\t'Mermaid'
svg\t'a picture'"
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l service -d 'Only chains on paths to and from the chains of this Kubernetes service: NAME, NAMESPACE/NAME or NAMESPACE/NAME:PORT' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l chain -d 'Only chains on paths to and from chains with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l full -d 'Show every chain, without folding'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l from -d 'For a service: the source of the packet, ADDRESS or ADDRESS:PORT, or `any`. By default an external address (one for documentation: 192.0.2.1, 2001:db8::1)' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l own -d 'With --file: an address of the machine that the rules are from; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l file -d 'Use the rules of this file instead of the kernel\'s: a snapshot, output of iptables-save, or a ruleset in nft\'s language' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l expect -d 'Set the exit code by the outcome: accepted (delivered, forwarded or sent), dropped (also rejected), or "dnat to ADDRESS[:PORT]". It is 0 if every path has this outcome, in every possible direction; 1 if a path has another one; and 2 if the outcome of a path is unknown' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l in -d 'Input interface of the packet' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l out -d 'Output interface of the packet' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l mark -d 'Mark of the packet: a number, or 0x and hexadecimal digits' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l state -d 'State of the packet\'s connection' -r -f -a "new\t''
established\t''
related\t''
invalid\t''
untracked\t''
any\t'unknown'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l direction -d 'Direction of the packet: in, forward, out or local' -r -f -a "in\t''
forward\t''
out\t''
local\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l uid -d 'User ID of the sending socket' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l why -d 'Show only the rules that stop the packet, although others accept it'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l all -d 'Show every path, and also where a packet reaches the end of a chain and is accepted'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l as-is -d 'Use the current elements of sets that rules fill; by default, any packet may or may not be in such a set'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l format -d 'Output format' -r -f -a "text\t'for a terminal'
markdown\t'Markdown'"
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l file -d 'Use the rules of this file instead of the kernel\'s: a snapshot, output of iptables-save, or a ruleset in nft\'s language' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -s o -l output -d 'The file to write; standard output if it is `-`' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l trace -d 'Add the path of this packet, in one argument: \'tcp 10.0.0.5 10.96.0.1:443\', in every direction that its addresses allow; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l record -d 'Add the last transactions of the recorder in this directory' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l versions -d 'The versions of iptables that may read the tables: those on the node and in the images of its agents. The default is all known versions' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l all -d 'List each problem separately'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l sarif -d 'Write SARIF 2.1.0, the format of static analysis results'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s f -l file -d 'Input file; standard input if omitted, or `-`' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l format -d 'Format of the file; by default it is recognized by the content' -r -f -a "nft\t'nft\'s language'
nft-json\t'libnftables\' JSON'
iptables\t'the format of iptables-save'"
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l prune -d 'Make only the tables in the file match it; with OWNER, only objects with this tag' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l keep -d 'Keep chains whose names match, and the jumps to them from other chains, and change only what differs from the input, which is that of iptables-restore. Use this on a node whose running agents have chains in these tables (KUBE-*, CNI-*, cali-*). May be given more than once. Matching chains in the input are ignored; unchanged rules keep their counters' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l confirm -d 'Undo the change unless it is confirmed within this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s I -l include -d 'Allow the text to include files in and below this directory (`include "file"`); may be given more than once. Without this option, no file can be included' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l profile -d 'In nf_tables, write rules in the form of this version of iptables. All later versions read the form of 1.8.7; earlier versions overlook parts of later forms' -r -f -a "1.8.7\t'marks, ports and flags as matches'
1.8.8\t'marks, ports and flags as native expressions of nf_tables, which older versions overlook'
1.8.10\t'as 1.8.8, with the protocol of IPv4 from the packet\'s header'"
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l dry-run -d 'Change nothing. Prints the changes of input in nft\'s language, after the kernel has checked it, and those of --prune and --replace; with --prune the exit code is 1 if there are any. Input of iptables-restore is only checked'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l replace -d 'Replace the whole ruleset of nf_tables, or the selected part: also delete all other tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l bytecode -d 'With --replace and --dry-run, show rules that iptables cannot express as bytecode'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s e -l echo -d 'Print the added objects in nft\'s language, as reported by the kernel; with --json, the document contains them'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s a -l handles -d 'With --echo: print the handles assigned by the kernel'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s j -d 'With --echo: print libnftables\' JSON'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s n -l noflush -d 'Do not empty the tables first. A user-defined chain that the input declares (`:CHAIN`) is emptied anyway'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s c -l counters -d 'Set counters to those in the input, instead of 0'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand snapshot" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -s h -l help -d 'Print help'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -f -a "chains" -d 'Delete leftover chains, and all rules that jump to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and not __fish_seen_subcommand_from chains help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l comment -d 'Also remove rules with a comment that matches; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l confirm -d 'Undo the change unless it is confirmed within this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l dry-run -d 'Only print the chains and rules that would be removed; exit code 1 if there are any'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from chains" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from help" -f -a "chains" -d 'Delete leftover chains, and all rules that jump to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand delete; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l to -d 'The language, by default nft; with --in-place, which requires it, the backend: nft or legacy' -r -f -a "nft\t'nft\'s language; with --in-place nf_tables'
iptables\t'the format of iptables-save'
legacy\t'only with --in-place: the legacy x_tables'"
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l rule -d 'Convert this rule, in the syntax of `iptables` arguments: \'-t nat -A POSTROUTING -j MASQUERADE\'; or only its options' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -s f -l file -d 'Input file; standard input if omitted, or `-`' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l from -d 'The backend to move the tables from; the default is the other one' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'"
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l keep -d 'Keep chains whose names match, and the jumps to them, in the old backend; may be given more than once. If such a jump is in a built-in chain that has other rules or the policy DROP, this requires --force: packets that the kept chain accepts still traverse the moved rules, and the other way round' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l confirm -d 'Undo the change unless it is confirmed within this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -s 4 -l ipv4 -d 'Only tables of IPv4; the default of a text'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -s 6 -l ipv6 -d 'Only tables of IPv6'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l in-place -d 'Move the tables in the kernel'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l dry-run -d 'Only check the migration, and show the tables that would move; in nf_tables the kernel checks it, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l force -d 'Move even if a kubelet or kube-proxy seems to write to the old backend, or if jumps to kept chains would be separated from the rules next to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand convert" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand confirm" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand confirm" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand confirm" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand confirm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l by -d 'What to show: rule, chain or set' -r -f -a "rule\t''
chain\t''
set\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l sort -d 'Order: rate (packets per second), byte-rate (bytes per second), packets or bytes (in total)' -r -f -a "rate\t''
byte-rate\t''
packets\t''
bytes\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l interval -d 'Time between two samples, for instance 500ms or 2s' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l iterations -d 'Exit after this number of intervals' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l limit -d 'Maximum number of lines; on a terminal, also limited to its height' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l listen -d 'Serve the metrics over HTTP at this address, for instance 127.0.0.1:9638' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l against -d 'Compare nf_tables with this file, which has any format that `apply` accepts, and is read again for each request; with --backend legacy compare legacy tables with output of iptables-save. Unless the file is a snapshot, compares only the tables in it' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l comment -d 'Show only rules whose comment matches, for instance \'default/*\'; may be given more than once. Without it, shows all rules with a comment' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand metrics" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -s h -l help -d 'Print help'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -f -a "changes" -d 'Print each change of nf_tables, and the thread that made it'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -f -a "packets" -d 'Print the rules that packets traverse'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -f -a "drops" -d 'Print the rules and policies that drop packets, as they count them'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and not __fish_seen_subcommand_from changes packets drops help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l count -d 'Exit after this number of transactions' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l show -d 'Maximum number of shown objects of a transaction; JSON has all' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l buffer -d 'Maximum size of the kernel\'s queue of unread events, in bytes, if the kernel permits it' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l bytecode -d 'Show rules that iptables cannot express as bytecode, and the keys of elements as bytes, instead of in nft\'s syntax'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from changes" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l in -d 'Trace only packets that arrive at this interface' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l count -d 'Exit after this number of steps' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l buffer -d 'Maximum size of the kernel\'s queue of unread events, in bytes, if the kernel permits it' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from packets" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l match -d 'Another pattern; the former form of the option' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l interval -d 'Time between two samples, for instance 500ms or 2s' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l iterations -d 'Exit after this number of intervals' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from drops" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from help" -f -a "changes" -d 'Print each change of nf_tables, and the thread that made it'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from help" -f -a "packets" -d 'Print the rules that packets traverse'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from help" -f -a "drops" -d 'Print the rules and policies that drop packets, as they count them'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l max-size -d 'Maximum size of all files in bytes, or with a suffix: K, M or G. If they are larger, the oldest ones are removed' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l max-age -d 'Maximum age of recorded transactions, for instance 12h or 30d' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l buffer -d 'Maximum size of the kernel\'s queue of unread events, in bytes, if the kernel permits it' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l since -d 'Only from this time on: 10:32, yesterday, -2h, 2026-11-28T10:32' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l until -d 'Only until this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -s n -l number -d 'Only the last NUMBER' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -l bytecode -d 'Show rules that iptables cannot express as bytecode, one pair of brackets per expression, instead of in nft\'s syntax'
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l at -d 'The rules at this moment: @10:32, @yesterday, @-10m, @2026-11-28T10:32, @gen:77' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand blame" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l since -d 'Only rulesets from this moment on: @10:32, @yesterday, @-10m, @2026-11-28T10:32, @gen:77' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l until -d 'Only rulesets until this moment' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l dir -d 'Directory of the recorder\'s files' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l in -d 'Input interface of the packet' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l out -d 'Output interface of the packet' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l mark -d 'Mark of the packet: a number, or 0x and hexadecimal digits' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l state -d 'State of the packet\'s connection' -r -f -a "new\t''
established\t''
related\t''
invalid\t''
untracked\t''
any\t'unknown'"
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l direction -d 'Direction of the packet: in, forward, out or local' -r -f -a "in\t''
forward\t''
out\t''
local\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l uid -d 'User ID of the sending socket' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l all -d 'Try every ruleset'
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l as-is -d 'Use the elements of sets that rules fill as they were recorded; by default, any packet may or may not be in such a set'
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand bisect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -s h -l help -d 'Print help'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "status" -d 'Detect the backend that this node\'s Kubernetes uses: nf_tables or the legacy tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "ensure" -d 'Create the missing chains that a kubelet creates when it starts'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "check" -d 'List the missing chains and rules of a kubelet'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "remove" -d 'Remove a kubelet\'s chains and rules'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "guard" -d 'Guard chains and rules: restore them immediately when another process removes them'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and not __fish_seen_subcommand_from status ensure check remove guard help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l wait -d 'Wait up to this time for a result: nf_tables sends notifications, legacy tables are polled' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l follow -d 'Run until stopped, and print each result that differs from the previous one'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l rules -d 'Also count the rules of the chains'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -s q -l quiet -d 'Print only the result, without the chains'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l confirm -d 'Undo the change unless it is confirmed within this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l up-to-1.26 -d 'Include the chains of kubelets up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l force -d 'With `ensure`: create the chains even if the other backend has the hint, or only the legacy tables have chains of Kubernetes'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l auto -d 'Use the backend that `kube status` finds on this node; fail if it finds none'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from ensure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l up-to-1.26 -d 'Include the chains of kubelets up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l force -d 'With `ensure`: create the chains even if the other backend has the hint, or only the legacy tables have chains of Kubernetes'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l auto -d 'Use the backend that `kube status` finds on this node; fail if it finds none'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l confirm -d 'Undo the change unless it is confirmed within this time' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l up-to-1.26 -d 'Include the chains of kubelets up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l force -d 'With `ensure`: create the chains even if the other backend has the hint, or only the legacy tables have chains of Kubernetes'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l auto -d 'Use the backend that `kube status` finds on this node; fail if it finds none'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l file -d 'Guard the chains in a file in the format of iptables-save, and the rules that -A and -I add to them; for IPv4, or with -6 for IPv6. Policies are ignored' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l poll -d 'Interval between checks of legacy tables' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l quiet -d 'Time without changes that ends a burst of changes' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l log -d 'Also write the library\'s log to standard error, up to this level: error, warn, info, debug or trace' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l lock -d 'For legacy tables: the lock. `standard` is the legacy tools\' lock (the file in XTABLES_LOCKFILE, otherwise /run/xtables.lock); `none` is for a private network namespace; anything else is the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l up-to-1.26 -d 'Include the chains of kubelets up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l force -d 'With `ensure`: create the chains even if the other backend has the hint, or only the legacy tables have chains of Kubernetes'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l auto -d 'Use the backend that `kube status` finds on this node; fail if it finds none'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from guard" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "status" -d 'Detect the backend that this node\'s Kubernetes uses: nf_tables or the legacy tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "ensure" -d 'Create the missing chains that a kubelet creates when it starts'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "check" -d 'List the missing chains and rules of a kubelet'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove a kubelet\'s chains and rules'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "guard" -d 'Guard chains and rules: restore them immediately when another process removes them'
complete -c chainwright -n "__fish_chainwright_using_subcommand kube; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -s h -l help -d 'Print help'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -f -a "install" -d 'Make links to this program with the names of nft and of iptables\' programs'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and not __fish_seen_subcommand_from install help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from install" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from install" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from install" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from help" -f -a "install" -d 'Make links to this program with the names of nft and of iptables\' programs'
complete -c chainwright -n "__fish_chainwright_using_subcommand multicall; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s f -l file -d 'Read commands from this file; from standard input if it is `-`' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s D -l define -d 'Define a variable for the file; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s I -l includepath -d 'Search this directory for included files; may be given more than once' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s d -l debug -d 'First print the instructions of listed or created rules. Only nft\'s level `netlink` is implemented' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s i -l interactive -d 'Read commands from standard input, one line at a time, until `quit` or the end; errors do not end the session. There is no line editing other than the terminal\'s'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s c -l check -d 'Have the kernel check the changes; change nothing'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s e -l echo -d 'Print the added objects, as reported by the kernel'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s o -l optimize -d 'Optimize a ruleset: not implemented'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s a -l handles -d 'Show the handles assigned by the kernel'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s s -l stateless -d 'Omit the state of stateful objects, such as counters'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s t -l terse -d 'Omit the elements of sets'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s n -l numeric -d 'Show all named values as numbers: priorities, protocols, times (in seconds), and all others'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s y -l numeric-priority -d 'Show priorities of chains as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s p -l numeric-protocol -d 'Show protocols above IP as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s T -l numeric-time -d 'Show times in seconds'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s u -l guid -d 'Show users and groups by name'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s S -l service -d 'Show ports by their names in /etc/services'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s N -l reversedns -d 'Print host names instead of addresses: not implemented, because DNS can hang or return wrong names'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s j -d 'Write libnftables\' JSON, and read it if the input is JSON'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s v -l version -d 'Print the version of nft in whose form the output is, then that of this program'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s V -d 'Print the version, and the built-in features'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-save" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-save" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-save" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-restore" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-restore" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-restore" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-save" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-save" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-save" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-restore" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything that contains a slash), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-restore" -l nft-version -d 'Print nft\'s language and its JSON in the form of this version of nft: 1.0 for programs that read the output of nft 1.0.6, 1.1 for that of nft 1.1.7' -r -f -a "1.0\t''
1.1\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-restore" -l json -d 'Write JSON instead of text: one document, or one for each event; see docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "get" -d 'List tables, chains, rules, sets or elements, or the whole ruleset'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "exists" -d 'Look up chains by name, without a listing'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "diff" -d 'Show the changes since a file was written or a moment was recorded, or between two'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "graph" -d 'Show the jumps between chains, as a tree or a graph'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "trace" -d 'Show the path of a packet through the rules'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "explain" -d 'Explain a rule, a chain or a service in English'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "report" -d 'Write a page about a ruleset'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "check" -d 'Find present and future problems in the tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "apply" -d 'Apply a file atomically: nft\'s language, libnftables\' JSON, output of iptables-save, or a snapshot'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "snapshot" -d 'Save the ruleset of nf_tables in a file'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "delete" -d 'Delete leftover chains, and all rules that jump to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "convert" -d 'Convert rules between iptables and nft; with --in-place, move tables to the other backend'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "confirm" -d 'Keep the change that waits for a confirmation'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "top" -d 'Show the rules, chains or sets that count the most packets'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "metrics" -d 'Print counters, sizes and totals for Prometheus, or serve them over HTTP'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "watch" -d 'Print changes, the rules that packets traverse, or those that drop packets, as they happen'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "record" -d 'Record every change of nf_tables, and the process that made it'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "log" -d 'Show recorded transactions, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "show" -d 'Show a recorded transaction: what it changed, and the process that made it'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "blame" -d 'Show the recorded transaction that added each rule of a chain, or each element of a set'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "bisect" -d 'Find the recorded transaction that changed the outcome of a packet'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "kube" -d 'Detect Kubernetes\' backend; create, check, remove or guard its chains'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "multicall" -d 'Make links with the names of nft and of iptables\' programs'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "completions" -d 'Print completions for a shell'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "man" -d 'Print a manual page'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "nft" -d 'Behave like the program `nft`, also through a link with the name nft'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables" -d 'Behave like iptables: change or list a table of IPv4'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables-save" -d 'Behave like iptables-save: print tables of IPv4 as text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables-restore" -d 'Behave like iptables-restore: restore tables of IPv4 from text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables" -d 'Behave like ip6tables: change or list a table of IPv6'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables-save" -d 'Behave like ip6tables-save: print tables of IPv6 as text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables-restore" -d 'Behave like ip6tables-restore: restore tables of IPv6 from text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from get exists diff graph trace explain report check apply snapshot delete convert confirm top metrics watch record log show blame bisect kube multicall completions man nft iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "tables" -d 'List tables, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "chains" -d 'List chains, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "rules" -d 'List rules, by chain'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "sets" -d 'List sets and maps, one per line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "elements" -d 'List the elements of sets and maps'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "ruleset" -d 'Print the ruleset in nft\'s language, as libnftables\' JSON, or in the format of iptables-save'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from get" -f -a "pending" -d 'Show the change that waits for a confirmation'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from delete" -f -a "chains" -d 'Delete leftover chains, and all rules that jump to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from watch" -f -a "changes" -d 'Print each change of nf_tables, and the thread that made it'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from watch" -f -a "packets" -d 'Print the rules that packets traverse'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from watch" -f -a "drops" -d 'Print the rules and policies that drop packets, as they count them'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kube" -f -a "status" -d 'Detect the backend that this node\'s Kubernetes uses: nf_tables or the legacy tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kube" -f -a "ensure" -d 'Create the missing chains that a kubelet creates when it starts'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kube" -f -a "check" -d 'List the missing chains and rules of a kubelet'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kube" -f -a "remove" -d 'Remove a kubelet\'s chains and rules'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kube" -f -a "guard" -d 'Guard chains and rules: restore them immediately when another process removes them'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from multicall" -f -a "install" -d 'Make links to this program with the names of nft and of iptables\' programs'
