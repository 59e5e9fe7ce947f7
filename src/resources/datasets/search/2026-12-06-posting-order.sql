-- One passage of a term can be looked up, too, so that a common term is read for the candidates alone.
create index posting_place on posting (term, dataset_id, edition_id, passage_id) include (tf, len);
drop index posting_term;
