-- a failed sign-in or request for a token names the network that it came from, where the account may fail only so often; null for all other rows
alter table login add column failed_from text;
drop index login_failures;
create index login_failures on login (account, failed_from, at) where failed_from is not null;
