-- Whether the index of the vectors has numbers of 16 bits: tables that were made before have the index that they have.
alter table vector_tables add column half boolean not null default false;
