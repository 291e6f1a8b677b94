"""The vault with all backups, and the records of what this tool has done."""
