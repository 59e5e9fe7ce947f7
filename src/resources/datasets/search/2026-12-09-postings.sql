-- One row for up to 256 passages that have a term, in place of a row for each: a question reads a few thousand rows where it read as many as there are postings.
set local work_mem = '256MB';
create table postings (
  -- at most 255 characters: a row of an index has room for no more
  term text not null,
  dataset_id bigint not null,
  edition_id bigint not null,
  -- the passages whose ordinal divided by 256 is this
  part integer not null,
  -- three lists side by side: the rest of that division in a byte, how often the passage has the term in a byte, and how many terms it has in all in two bytes
  ordinals bytea not null,
  counts bytea not null,
  lengths bytea not null
);

insert into postings
select term, dataset_id, edition_id, ordinal >> 8, string_agg(substring(int2send((ordinal & 255)::smallint) from 2), ''::bytea order by ordinal),
  string_agg(substring(int2send(least(tf, 255)::smallint) from 2), ''::bytea order by ordinal), string_agg(int2send(len), ''::bytea order by ordinal)
from (
  select left(term, 255) as term, posting.dataset_id, posting.edition_id, ordinal, sum(tf) as tf, max(len) as len
  from posting join passages on passages.id = posting.passage_id group by 1, 2, 3, 4
) as posting group by term, dataset_id, edition_id, ordinal >> 8;

drop table posting;
create unique index postings_place on postings (term, dataset_id, edition_id, part) include (ordinals, counts, lengths);
create index postings_edition on postings (edition_id, part);
analyze postings;
