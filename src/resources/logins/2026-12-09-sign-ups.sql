-- a sign-up names the network that it came from, which may make only so many; null for all other rows
alter table login add column sign_up_from text;
create index login_sign_ups on login (sign_up_from, at) where sign_up_from is not null;
