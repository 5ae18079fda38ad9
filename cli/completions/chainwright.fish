# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_chainwright_global_optspecs
    string join \n netns= json h/help V/version
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

complete -c chainwright -n "__fish_chainwright_needs_command" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_needs_command" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_needs_command" -s V -l version -d 'Print version'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "chains" -d 'List chains, one a line'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "rules" -d 'List rules, by chain'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "sets" -d 'List sets and maps, one a line'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "list" -d 'List in nft\'s language, as `nft list` does'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "apply" -d 'Change the ruleset as a text in nft\'s language says, all of it or nothing, as `nft -f` does'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "backup" -d 'Keep the ruleset of nf_tables in a file'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "rollback" -d 'Make the ruleset what a backup shows, in one transaction'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "reconcile" -d 'Make the tables in a backup what the backup shows, by the fewest changes'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "diff" -d 'Show what changed since a backup, or between two'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "graph" -d 'Show which chains lead to which'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "save" -d 'Print iptables\' tables as iptables-save does'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "restore" -d 'Put tables into the kernel as iptables-restore does, all at once or not at all'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "cleanup" -d 'Take out chains that somebody left behind, with all that leads to them'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "migrate" -d 'Move iptables\' tables from one backend to the other'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "doctor" -d 'Say what is wrong with iptables\' tables, or will go wrong'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "translate" -d 'Say iptables\' rules in nft\'s language, or nft\'s in iptables\''
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "nft" -d 'Behave as the program `nft` does: also what a link to this command does that is called nft'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "detect" -d 'Tell which backend this node\'s Kubernetes uses: nf_tables or the legacy tables'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "guard" -d 'Keep chains and rules: what somebody takes away is made again at once'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "kubelet" -d 'Make, check or remove the chains that a kubelet makes when it starts'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "watch" -d 'Tell who changes nf_tables, and what'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "trace" -d 'Show where a packet goes'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "why" -d 'Show whose rules stop a packet, although others let it through'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "trace-packets" -d 'Tell which rules packets meet'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "completions" -d 'Print completions for a shell'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "man" -d 'Print a manual page'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables" -d 'Be iptables: change or list a table of IPv4'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables-save" -d 'Be iptables-save: print tables of IPv4 as a text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "iptables-restore" -d 'Be iptables-restore: put tables of IPv4 into the kernel from a text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables" -d 'Be ip6tables: change or list a table of IPv6'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables-save" -d 'Be ip6tables-save: print tables of IPv6 as a text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "ip6tables-restore" -d 'Be ip6tables-restore: put tables of IPv6 into the kernel from a text'
complete -c chainwright -n "__fish_chainwright_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l match -d 'Only chains with a name like this, for instance \'KUBE-S[VE][CP]-*\' or \'{INPUT,OUTPUT}\'' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l rules -d 'Show how many rules each chain has'
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand chains" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l match -d 'Only chains with a name like this, for instance \'KUBE-S[VE][CP]-*\'' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l bytecode -d 'Print what `nft --debug=netlink list` prints before its own listing (nft 1.0.6): for each table of nf_tables its sets with their elements, then its rules, an expression a line'
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand rules" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l match -d 'Only sets with a name like this, for instance \'blocked-*\'' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l elements -d 'List the elements, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l anonymous -d 'List anonymous sets, too: those that belong to a single rule'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand sets" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s a -l handles -d 'With the handles that the kernel gave'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s s -l stateless -d 'Without the numbers of counters and the like'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s t -l terse -d 'Without the elements of sets'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s n -l numeric -d 'All that has a name as a number: priorities, protocols, times in seconds, and every other value'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s y -l numeric-priority -d 'Priorities of chains as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s p -l numeric-protocol -d 'Protocols above IP as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s T -l numeric-time -d 'Times as seconds'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s u -l guid -d 'Users and groups by their names'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s S -l service -d 'Ports by the names that /etc/services has for them'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s j -d 'As libnftables\' JSON, which `nft -j` writes: what `--json` says, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s I -l include -d 'Files in this directory, and below it, may be included (`include "file"`); may be given more than once. Without it nothing may' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s c -l check -d 'Only check the text, and have the kernel check the changes; change nothing'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s e -l echo -d 'Print what was added, in nft\'s language, as the kernel tells of it; with --json, in the document'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s a -l handles -d 'With --echo: with the handles that the kernel gave'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s j -d 'The text is libnftables\' JSON'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand backup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l dry-run -d 'Only show what would be done to which table, and to each object in it as `diff` shows it, and have the kernel check it'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l bytecode -d 'With --dry-run, show what iptables has no words for as bytecode, instead of in nft\'s words'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l owner -d 'Only what carries this tag in its comment' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l dry-run -d 'Only show what would be done'
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand reconcile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l tries -d 'Try so many packets at most' -r
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
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l counters -d 'Compare counters, quotas and times of last use, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l bytecode -d 'Show what iptables has no words for as bytecode, one pair of brackets an expression, instead of in nft\'s words'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l packets -d 'Instead of what differs, show packets that are treated differently: their values are those that the rules name. The files may be texts of iptables-save or in nft\'s language, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l format -d 'As what' -r -f -a "text\t'trees of lines'
dot\t'Graphviz'
mermaid\t'Mermaid'
svg\t'a picture'"
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l service -d 'Only what leads to and from the chains of this service of Kubernetes: NAME, NAMESPACE/NAME or NAMESPACE/NAME:PORT' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l chain -d 'Only what leads to and from the chains of this name' -r
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
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l full -d 'Show each chain, however many there are of a kind'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand graph" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -s c -l counters -d 'Print the counters of rules, too; those of policies are always printed'
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand save" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l keep-foreign -d 'Leave chains whose names match, and the jumps to them from other chains, where they are, and change only what differs from the text: how tables are restored while agents run that have chains in them (KUBE-*, CNI-*, cali-*). May be given more than once. What the text itself has of such chains is passed over; rules that stay keep their counters' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s T -l table -d 'Only this table of the text, which must have it (-t is --test, as iptables-restore has it)' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l profile -d 'In nf_tables, write rules as this version of iptables does. Every later version reads what 1.8.7 wrote; earlier ones overlook parts of what later ones write' -r -f -a "1.8.7\t'marks, ports and flags as matches'
1.8.8\t'marks, ports and flags as nf_tables\' own expressions, which older versions overlook'
1.8.10\t'as 1.8.8, the protocol of IPv4 in the packet\'s header'"
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s n -l noflush -d 'Do not empty the tables first. A user\'s chain that the text declares (`:CHAIN`) is emptied all the same'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s c -l counters -d 'Set counters to those in the text, instead of 0'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s t -l test -d 'Only check the text, and have the kernel check the changes to nf_tables; change nothing'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l comment -d 'Rules with a comment that matches go, too; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l dry-run -d 'Only print what would go; exit code 1 if anything would'
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand cleanup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l from -d 'The backend that has the tables' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'"
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l to -d 'The backend that is to have them' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'"
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l keep-foreign -d 'Leave chains whose names match, and the jumps to them, where they are; may be given more than once. Where rules stand beside such a jump in a built-in chain, or its policy is DROP, it needs --force: packets that the kept chain accepts still meet what moved, and the other way round' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l dry-run -d 'Only look whether it can be done, and say what would move; in nf_tables the kernel looks at it, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l force -d 'Do it even if a kubelet or kube-proxy seems to write to the old backend, or if jumps to chains that are kept would be parted from the rules beside them'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -s 4 -l ipv4 -d 'Only tables of IPv4'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -s 6 -l ipv6 -d 'Only tables of IPv6'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand migrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l versions -d 'The versions of iptables that may read the tables: those on the node and in its agents\' images. By default all that are known' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l all -d 'Say each fault by itself'
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -l rule -d 'This rule, as it is typed behind `iptables`: \'-t nat -A POSTROUTING -j MASQUERADE\'; or only its options' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -l to -d 'Into which language' -r -f -a "nft\t'nft\'s'
iptables\t'iptables-save\'s'"
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -s 4 -l ipv4 -d 'It is of IPv4, which is what is taken if nothing is said'
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -s 6 -l ipv6 -d 'It is of IPv6'
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand translate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s f -l file -d 'Read commands from this file; from standard input if it is `-`' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s D -l define -d 'Give a variable a value, for the file; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s I -l includepath -d 'Look for included files in this directory; may be given more than once' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s d -l debug -d 'Print the instructions of what is listed, or made, first. Of nft\'s levels only `netlink` is built' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s i -l interactive -d 'Read commands from standard input, a line at a time, until `quit` or the end; a wrong one does not end it. Lines are edited as the terminal does it'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s c -l check -d 'Have the kernel check the changes; change nothing'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s e -l echo -d 'Print what was added, as the kernel tells of it'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s o -l optimize -d 'Optimize a ruleset: not built'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s a -l handles -d 'With the handles that the kernel gave'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s s -l stateless -d 'Without the numbers of counters and the like'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s t -l terse -d 'Without the elements of sets'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s n -l numeric -d 'All that has a name as a number: priorities, protocols, times in seconds, and every other value'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s y -l numeric-priority -d 'Priorities of chains as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s p -l numeric-protocol -d 'Protocols above IP as numbers'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s T -l numeric-time -d 'Times as seconds'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s u -l guid -d 'Users and groups by their names'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s S -l service -d 'Ports by the names that /etc/services has for them'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s N -l reversedns -d 'Names of hosts instead of addresses: not built, as a look-up can hang or lie'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s j -d 'Write libnftables\' JSON, and read it where the input is JSON'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s v -l version -d 'Print the version, behind that of the nft whose words these are'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s V -d 'The same, and what is built in'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand nft" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -l wait -d 'Wait so long until it is determined: nf_tables tell when it is, legacy tables are looked at' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -l follow -d 'Go on, and print each verdict that differs from the one before'
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -l rules -d 'Count the rules of the chains, too'
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -s q -l quiet -d 'Only the verdict: nothing is counted'
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand detect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l file -d 'What is kept: the chains of a text as iptables-save writes it, and the rules that -A and -I put into them, of IPv4, or with -6 of IPv6. Policies are not' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l poll -d 'How often legacy tables are looked at' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l quiet -d 'How long nothing must happen for a burst to be over' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l log -d 'Also write the library\'s log to standard error, down to this level: error, warn, info, debug or trace' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l up-to-1.26 -d 'Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l force -d 'Make them even where the other backend has the hint, or chains of Kubernetes are in the legacy tables only'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l auto -d 'In the backend that the node\'s components use, as `detect` finds it; where it finds none, nothing is done'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand guard" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l up-to-1.26 -d 'Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l force -d 'Make them even where the other backend has the hint, or chains of Kubernetes are in the legacy tables only'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l auto -d 'In the backend that the node\'s components use, as `detect` finds it; where it finds none, nothing is done'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -f -a "ensure" -d 'Make what is missing, in one transaction; of the legacy tables each at once'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -f -a "check" -d 'List what is missing; the exit code is 1 if anything is'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -f -a "remove" -d 'Remove them, in the same way, except chains that others use'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and not __fish_seen_subcommand_from ensure check remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l up-to-1.26 -d 'Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l force -d 'Make them even where the other backend has the hint, or chains of Kubernetes are in the legacy tables only'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l auto -d 'In the backend that the node\'s components use, as `detect` finds it; where it finds none, nothing is done'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from ensure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l up-to-1.26 -d 'Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l force -d 'Make them even where the other backend has the hint, or chains of Kubernetes are in the legacy tables only'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l auto -d 'In the backend that the node\'s components use, as `detect` finds it; where it finds none, nothing is done'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -s w -l wait -d 'For legacy tables: how long to wait for the lock of the legacy tools; 0 does not wait' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l lock -d 'For legacy tables: which lock. `standard` is the legacy tools\' (the file that XTABLES_LOCKFILE names, else /run/xtables.lock); `none` is for a network namespace of your own; else the path of a file' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l up-to-1.26 -d 'Also what kubelets made up to Kubernetes 1.26: KUBE-MARK-DROP, KUBE-MARK-MASQ and KUBE-POSTROUTING'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l force -d 'Make them even where the other backend has the hint, or chains of Kubernetes are in the legacy tables only'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l auto -d 'In the backend that the node\'s components use, as `detect` finds it; where it finds none, nothing is done'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from help" -f -a "ensure" -d 'Make what is missing, in one transaction; of the legacy tables each at once'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from help" -f -a "check" -d 'List what is missing; the exit code is 1 if anything is'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove them, in the same way, except chains that others use'
complete -c chainwright -n "__fish_chainwright_using_subcommand kubelet; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l count -d 'End after so many transactions' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l show -d 'Show at most so many objects of a transaction; JSON has them all' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l buffer -d 'How many bytes the kernel may queue while nobody reads, as far as it lets' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l bytecode -d 'Show what iptables has no words for as bytecode, and the keys of elements as bytes, instead of in nft\'s words'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l from -d 'Of a service: where the packet comes from, ADDRESS or ADDRESS:PORT, or `any`. If nothing is said, it is an address outside (of those for documentation: 192.0.2.1, 2001:db8::1)' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l own -d 'With --file: an address of the machine whose rules these are; may be given more than once' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l file -d 'In the rules of this file instead of the kernel\'s: a backup, a text of iptables-save, or one in nft\'s language' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l in -d 'It comes in by this interface' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l out -d 'It leaves by this interface' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l mark -d 'Its mark: a number, or 0x and hexadecimal digits' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l state -d 'State of its connection' -r -f -a "new\t''
established\t''
related\t''
invalid\t''
untracked\t''
any\t'it is not known'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l direction -d 'Its way: in, forward, out or local' -r -f -a "in\t''
forward\t''
out\t''
local\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l uid -d 'User whose socket sends it, as a number' -r
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
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l all -d 'Show every way, and the ends of chains that accept'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l as-is -d 'Take sets that rules fill as they are now; otherwise a packet may be in them or not'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l file -d 'In the rules of this file instead of the kernel\'s: a backup, a text of iptables-save, or one in nft\'s language' -r -F
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l in -d 'It comes in by this interface' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l out -d 'It leaves by this interface' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l mark -d 'Its mark: a number, or 0x and hexadecimal digits' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l state -d 'State of its connection' -r -f -a "new\t''
established\t''
related\t''
invalid\t''
untracked\t''
any\t'it is not known'"
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l direction -d 'Its way: in, forward, out or local' -r -f -a "in\t''
forward\t''
out\t''
local\t''"
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l uid -d 'User whose socket sends it, as a number' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand why" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l count -d 'End after so many steps' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l buffer -d 'How many bytes the kernel may queue while nobody reads, as far as it lets' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l family -d 'Only this family: ip, ip6, inet, arp, bridge, netdev' -r -f -a "ip\t'IPv4'
ip6\t'IPv6'
inet\t'IPv4 and IPv6 (nf_tables)'
arp\t'ARP'
bridge\t'bridges (nf_tables)'
netdev\t'devices (nf_tables)'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l backend -d 'Only this backend: nft, legacy, or all' -r -f -a "nft\t'nf_tables, as iptables-nft'
legacy\t'the legacy x_tables, as iptables-legacy'
all\t'both'"
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -s t -l table -d 'Only tables with this name' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -s 4 -l ipv4 -d 'Only IPv4: the same as --family ip'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -s 6 -l ipv6 -d 'Only IPv6: the same as --family ip6'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand trace-packets" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-save" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-save" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-restore" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand iptables-restore" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-save" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-save" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-restore" -l netns -d 'Work in this network namespace: a name that `ip netns` lists, or a path (anything with a / in it), for instance /proc/PID/ns/net' -r
complete -c chainwright -n "__fish_chainwright_using_subcommand ip6tables-restore" -l json -d 'Write JSON instead of text: one document, or one for each event, described in docs/json.md'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "chains" -d 'List chains, one a line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "rules" -d 'List rules, by chain'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "sets" -d 'List sets and maps, one a line'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "list" -d 'List in nft\'s language, as `nft list` does'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "apply" -d 'Change the ruleset as a text in nft\'s language says, all of it or nothing, as `nft -f` does'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "backup" -d 'Keep the ruleset of nf_tables in a file'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "rollback" -d 'Make the ruleset what a backup shows, in one transaction'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "reconcile" -d 'Make the tables in a backup what the backup shows, by the fewest changes'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "diff" -d 'Show what changed since a backup, or between two'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "graph" -d 'Show which chains lead to which'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "save" -d 'Print iptables\' tables as iptables-save does'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "restore" -d 'Put tables into the kernel as iptables-restore does, all at once or not at all'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "cleanup" -d 'Take out chains that somebody left behind, with all that leads to them'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "migrate" -d 'Move iptables\' tables from one backend to the other'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "doctor" -d 'Say what is wrong with iptables\' tables, or will go wrong'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "translate" -d 'Say iptables\' rules in nft\'s language, or nft\'s in iptables\''
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "nft" -d 'Behave as the program `nft` does: also what a link to this command does that is called nft'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "detect" -d 'Tell which backend this node\'s Kubernetes uses: nf_tables or the legacy tables'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "guard" -d 'Keep chains and rules: what somebody takes away is made again at once'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "kubelet" -d 'Make, check or remove the chains that a kubelet makes when it starts'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "watch" -d 'Tell who changes nf_tables, and what'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "trace" -d 'Show where a packet goes'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "why" -d 'Show whose rules stop a packet, although others let it through'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "trace-packets" -d 'Tell which rules packets meet'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "completions" -d 'Print completions for a shell'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "man" -d 'Print a manual page'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables" -d 'Be iptables: change or list a table of IPv4'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables-save" -d 'Be iptables-save: print tables of IPv4 as a text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "iptables-restore" -d 'Be iptables-restore: put tables of IPv4 into the kernel from a text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables" -d 'Be ip6tables: change or list a table of IPv6'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables-save" -d 'Be ip6tables-save: print tables of IPv6 as a text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "ip6tables-restore" -d 'Be ip6tables-restore: put tables of IPv6 into the kernel from a text'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and not __fish_seen_subcommand_from chains rules sets list apply backup rollback reconcile diff graph save restore cleanup migrate doctor translate nft detect guard kubelet watch trace why trace-packets completions man iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kubelet" -f -a "ensure" -d 'Make what is missing, in one transaction; of the legacy tables each at once'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kubelet" -f -a "check" -d 'List what is missing; the exit code is 1 if anything is'
complete -c chainwright -n "__fish_chainwright_using_subcommand help; and __fish_seen_subcommand_from kubelet" -f -a "remove" -d 'Remove them, in the same way, except chains that others use'
