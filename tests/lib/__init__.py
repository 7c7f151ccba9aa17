"""What the black-box tests share: an independent client, a keeper fixture, the command line, looks into /proc."""
