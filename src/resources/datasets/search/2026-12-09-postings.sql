-- One row for up to 256 passages that have a term, in place of a row for each: a question reads some thousand rows where it read as many as there are postings.
set local work_mem = '256MB';
create table postings (
  -- at most 255 characters: a row of the index has room for no more
  term text not null,
  dataset_id bigint not null,
  edition_id bigint not null,
  -- the passages whose ordinal divided by 256 is this
  part integer not null,
  -- two lists side by side: the rest of that division, a byte for each passage, and how often it has the term (less one, at most 15) times 4,096 with how many terms
  -- it has (at most 4,095), two bytes
  ordinals bytea not null,
  codes bytea not null
);

insert into postings
select term, dataset_id, edition_id, ordinal >> 8, string_agg(substring(int2send((ordinal & 255)::smallint) from 2), ''::bytea order by ordinal),
  string_agg(substring(int4send((least(tf, 16)::int - 1) * 4096 + least(len, 4095)) from 3), ''::bytea order by ordinal)
from (
  select left(term, 255) as term, posting.dataset_id, posting.edition_id, ordinal, sum(tf) as tf, max(len) as len
  from posting join passages on passages.id = posting.passage_id group by 1, 2, 3, 4
) as posting group by term, dataset_id, edition_id, ordinal >> 8;

drop table posting;
create unique index postings_place on postings (term, dataset_id, edition_id, part) include (ordinals, codes);
create index postings_edition on postings (edition_id, part);
analyze postings;
