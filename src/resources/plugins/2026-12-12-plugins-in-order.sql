-- the members of a schema keep their order, which is that of a form: jsonb sorts them
alter table plugin alter column definition type json using definition::json, alter column fields type json using fields::json;
