-- as password.ts writes it; null: none was given
alter table users add column password text;
