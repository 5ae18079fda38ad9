//! A legacy rule that iptables cannot express.

use chainwright::legacy::{Connection, Error, Family, HeaderBuf, Hook, NewTarget, TableEditor};
use chainwright_testing::Sandbox;

/// Creates ARP's table `filter` in the sandbox, with a rule in its chain `INPUT` that drops everything;
/// `false` if this kernel has no such tables.
pub(crate) fn drop_all(sandbox: &Sandbox) -> bool {
    let work = || -> Result<(), Error> {
        let connection = Connection::open(Family::Arp)?;
        connection.instantiate("filter")?;
        let table = connection
            .read("filter")?
            .in_use()
            .expect("the table was not created");
        let input = table.builtin(Hook::Input).expect("no chain INPUT");
        let header = HeaderBuf::from(input.final_entry().expect("no policy").header());
        let mut editor = TableEditor::of(&table);
        let rule = editor.build(header).unwrap().finish(NewTarget::Drop);
        editor
            .append(editor.builtin(Hook::Input).unwrap(), rule.unwrap())
            .unwrap();
        connection.replace(&mut editor.finish().unwrap())?;
        Ok(())
    };
    match sandbox.run(work).unwrap() {
        Ok(()) => true,
        Err(Error::NotBuilt { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}
