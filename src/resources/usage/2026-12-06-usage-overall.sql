-- What the rows of an hour, and of a day (UTC), add up to, of all users together, without what there may be very many of (keys, applications, tags): reports on
-- all usage read few rows, however many users there are. `hour` is where the span begins, `series` what a row is about. The spans `app` and `team` are days too:
-- `app` of each application, `team` of each team, whose calls count for each team that they were charged to, or for 0 if for none. Times are texts
-- (`times_short`): they are shorter than arrays, and strung together they are the sum.
create table usage_overall (
  month text collate "C" not null,
  hour timestamptz not null,
  span text collate "C" not null check (span in ('hour', 'day', 'app', 'team')),
  face text collate "C" not null,
  model text collate "C" not null,
  provider text collate "C" not null,
  region text collate "C" not null,
  balance text collate "C" not null,
  requests bigint not null,
  input_tokens bigint not null,
  cached_tokens bigint not null,
  output_tokens bigint not null,
  plan_tokens bigint not null,
  cost_usd numeric not null,
  unpriced bigint not null,
  errors bigint not null,
  first_times text collate "C" not null,
  total_times text collate "C" not null,
  series uuid not null,
  app text collate "C" not null default '',
  team bigint not null default 0,
  primary key (span, hour, series, month)
) partition by list (month);

do $$
declare
  part record;
begin
  for part in
    select substr(relname, 12) as suffix, obj_description(oid, 'pg_class') as made
    from pg_inherits join pg_class on oid = inhrelid where inhparent = 'usage_hour'::regclass
  loop
    execute format('create table %I partition of usage_overall for values in (%L) with (fillfactor = 70)', 'usage_overall_' || part.suffix,
      replace(part.suffix, '_', '-'));
    execute format('comment on table %I is %L', 'usage_overall_' || part.suffix, part.made);
  end loop;
end $$;

-- A histogram as text: numbers with commas between them, the bucket in the lower eight bits of each and how many in the bits above.
create function times_short(entries bigint[]) returns text language sql immutable as $$
  select coalesce(string_agg((((one & 4294967295) << 8) | (one >> 32))::text, ','), '') from unnest(entries) as one
$$;
-- The sum of such histograms, with commas between them.
create function times_added(texts text) returns text language sql immutable as $$
  select coalesce(string_agg(((many << 8) | bucket)::text, ',' order by bucket), '')
  from (
    select one & 255 as bucket, sum(one >> 8)::bigint as many from unnest(string_to_array(texts, ',')::bigint[]) as one group by 1
  ) as part
$$;

create function overall_series(face text, model text, provider text, region text, balance text, app text, team bigint)
returns uuid language sql stable as $$ select md5(row(face, model, provider, region, balance, app, team)::text)::uuid $$;
-- The spans that a row of an hour is added to.
create function usage_spans(hour timestamptz, app text, team_ids bigint[], out start timestamptz, out span text, out of_app text, out of_team bigint)
returns setof record language sql immutable as $$
  select hour, 'hour', '', 0::bigint
  union all select date_trunc('day', hour, 'UTC'), 'day', '', 0::bigint
  union all select date_trunc('day', hour, 'UTC'), 'app', app, 0::bigint
  union all select date_trunc('day', hour, 'UTC'), 'team', '', team from unnest(case when team_ids = '{}' then array[0::bigint] else team_ids end) as team
$$;

insert into usage_overall
select month, start, span, face, model, provider, region, balance, sum(requests), sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(plan_tokens),
  sum(cost_usd), sum(unpriced), sum(errors), times_short(times_sum(string_agg(times_text(first_times), ','))),
  times_short(times_sum(string_agg(times_text(total_times), ','))),
  overall_series(face, model, provider, region, balance, of_app, of_team), of_app, of_team
from usage_hour, usage_spans(hour, app, team_ids) group by month, start, span, face, model, provider, region, balance, of_app, of_team;

-- As before, and into the sums of all users.
create or replace function usage_fold(most integer) returns bigint language plpgsql as $$
declare
  moved bigint;
begin
  if not pg_try_advisory_xact_lock(7239014553) then
    return 0;
  end if;
  with gone as (
    delete from usage_fresh where ctid = any (array(select ctid from usage_fresh limit most)) returning *
  ), sums as (
    insert into usage_hour as old
    select month, hour, user_id, key_id, app, face, model, provider, region, tags, sum(requests), sum(input_tokens), sum(output_tokens), sum(plan_tokens),
      sum(cost_usd), sum(errors), balance, team_ids, route, sum(cached_tokens), times_sum(string_agg(times_text(first_times), ',')),
      times_sum(string_agg(times_text(total_times), ',')), series, sum(unpriced)
    from gone group by month, hour, user_id, key_id, app, face, model, provider, region, tags, balance, team_ids, route, series
    on conflict (hour, user_id, key_id, series, month) do update set
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens, plan_tokens = old.plan_tokens + excluded.plan_tokens,
      cost_usd = old.cost_usd + excluded.cost_usd, errors = old.errors + excluded.errors, cached_tokens = old.cached_tokens + excluded.cached_tokens,
      unpriced = old.unpriced + excluded.unpriced,
      first_times = times_sum(concat_ws(',', times_text(old.first_times), times_text(excluded.first_times))),
      total_times = times_sum(concat_ws(',', times_text(old.total_times), times_text(excluded.total_times)))
  ), overall as (
    insert into usage_overall as old
    select month, start, span, face, model, provider, region, balance, sum(requests), sum(input_tokens), sum(cached_tokens), sum(output_tokens), sum(plan_tokens),
      sum(cost_usd), sum(unpriced), sum(errors), times_short(times_sum(string_agg(times_text(first_times), ','))),
      times_short(times_sum(string_agg(times_text(total_times), ','))),
      overall_series(face, model, provider, region, balance, of_app, of_team), of_app, of_team
    from gone, usage_spans(hour, app, team_ids) group by month, start, span, face, model, provider, region, balance, of_app, of_team
    on conflict (span, hour, series, month) do update set
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      cached_tokens = old.cached_tokens + excluded.cached_tokens, output_tokens = old.output_tokens + excluded.output_tokens,
      plan_tokens = old.plan_tokens + excluded.plan_tokens, cost_usd = old.cost_usd + excluded.cost_usd, unpriced = old.unpriced + excluded.unpriced,
      errors = old.errors + excluded.errors,
      first_times = times_added(concat_ws(',', nullif(old.first_times, ''), nullif(excluded.first_times, ''))),
      total_times = times_added(concat_ws(',', nullif(old.total_times, ''), nullif(excluded.total_times, '')))
  )
  select count(*) into moved from gone;
  return moved;
end $$;
