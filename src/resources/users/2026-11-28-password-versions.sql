-- counts the passwords that the user has had: access tokens had by an earlier one are no longer good, but for the one with which the password was changed
alter table users add column password_version integer not null default 0;
alter table users add column password_kept text;
