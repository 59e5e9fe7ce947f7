-- A user who was deleted: nobody sees the row any more; it goes when all that belonged to it is gone.
alter table users add column removed_at timestamptz;
create index users_removed on users (id) where removed_at is not null;
drop index users_email;
create unique index users_email on users (lower(email)) where removed_at is null;
