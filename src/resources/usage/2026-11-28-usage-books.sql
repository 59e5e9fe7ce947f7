-- The configured model of a row, where the client called it by another name.
alter table usage add column route text;

-- As before, with the model.
create or replace function usage_rows(rows json) returns setof usage language sql stable as $$
  select "requestId", step, to_char(to_timestamp(at / 1000) at time zone 'UTC', 'YYYY-MM'), to_timestamp(at / 1000), "userId", coalesce("teamIds", '{}'),
    "keyId", left(app, 200), face, tags, left(model, 200), left("servedModel", 200), provider, region, attempts, status, "end", "inputTokens", "outputTokens",
    "cachedTokens", "thoughtTokens", provenance, "planTokens", coalesce(balance, 'inference'), "costUsd"::numeric(20, 12), "queueMs", "firstTokenMs", "totalMs",
    coalesce("cacheWriteTokens", 0), coalesce("cacheWrite1hTokens", 0), left(route, 200)
  from json_to_recordset(rows) as row(
    "requestId" text, step bigint, at double precision, "userId" bigint, "teamIds" bigint[], "keyId" bigint, app text, face text, tags jsonb, model text,
    "servedModel" text, provider text, region text, attempts json, status integer, "end" text, "inputTokens" bigint, "outputTokens" bigint,
    "cachedTokens" bigint, "thoughtTokens" bigint, provenance text, "planTokens" bigint, balance text, "costUsd" numeric, "queueMs" double precision,
    "firstTokenMs" double precision, "totalMs" double precision, "cacheWriteTokens" bigint, "cacheWrite1hTokens" bigint, route text)
$$;

-- A histogram of milliseconds: an entry for each bucket that has any, the bucket in its upper 32 bits and how many in its lower. There are eight buckets to each
-- doubling, so that a time read back is right to five per cent.
create function time_bucket(milliseconds double precision) returns bigint language sql immutable as $$
  select floor(8 * ln(least(greatest(milliseconds, 1), 1e9)) / ln(2::double precision))::bigint
$$;
create function times_of(milliseconds double precision[]) returns bigint[] language sql immutable as $$
  select coalesce(array_agg((bucket << 32) | many order by bucket), '{}')
  from (select time_bucket(one) as bucket, count(*) as many from unnest(milliseconds) as one where one is not null group by 1) as part
$$;
-- The sum of histograms, given as their entries with commas between them.
create function times_sum(entries text) returns bigint[] language sql immutable as $$
  select coalesce(array_agg((bucket << 32) | many order by bucket), '{}')
  from (
    select one >> 32 as bucket, sum(one & 4294967295)::bigint as many from unnest(string_to_array(entries, ',')::bigint[]) as one group by 1
  ) as part
$$;
create function times_text(entries bigint[]) returns text language sql immutable as $$ select nullif(array_to_string(entries, ','), '') $$;

-- The sums of hours by balance, teams and model too, with times. What a row of them is about is in `series`: its texts together would not fit into a page of
-- the index. They are made again out of the rows.
alter table usage_hour drop constraint usage_hour_pkey;
truncate usage_hour, usage_fresh;
alter table usage_hour
  add column balance text collate "C" not null,
  add column team_ids bigint[] not null,
  add column route text collate "C" not null,
  add column cached_tokens bigint not null,
  add column first_times bigint[] not null,
  add column total_times bigint[] not null,
  add column series uuid not null;
alter table usage_hour add primary key (hour, user_id, key_id, series, month);
drop table usage_fresh;
create table usage_fresh (like usage_hour);

create function usage_series(app text, face text, model text, route text, provider text, region text, tags text, balance text, team_ids bigint[])
returns uuid language sql stable as $$ select md5(row(app, face, model, route, provider, region, tags, balance, team_ids)::text)::uuid $$;

insert into usage_fresh
select month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors,
  balance, team_ids, route, cached_tokens, times_of(first_times), times_of(total_times),
  usage_series(app, face, model, route, provider, region, tags, balance, team_ids)
from (
  select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance,
    team_ids, coalesce(route, model) as route, count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
    sum(plan_tokens) as plan_tokens, coalesce(sum(cost_usd), 0) as cost_usd, count(*) filter (where status >= 400 and status <> 499) as errors,
    sum(cached_tokens) as cached_tokens, array_agg(first_token_ms) as first_times, array_agg(total_ms) as total_times
  from usage group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
) as sums;

-- As before, with the members above.
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
      times_sum(string_agg(times_text(total_times), ',')), series
    from gone group by month, hour, user_id, key_id, app, face, model, provider, region, tags, balance, team_ids, route, series
    on conflict (hour, user_id, key_id, series, month) do update set
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens, plan_tokens = old.plan_tokens + excluded.plan_tokens,
      cost_usd = old.cost_usd + excluded.cost_usd, errors = old.errors + excluded.errors, cached_tokens = old.cached_tokens + excluded.cached_tokens,
      first_times = times_sum(concat_ws(',', times_text(old.first_times), times_text(excluded.first_times))),
      total_times = times_sum(concat_ws(',', times_text(old.total_times), times_text(excluded.total_times)))
  )
  select count(*) into moved from gone;
  return moved;
end $$;

-- The books that a row belongs to: of its user, its teams and its key, each for the month, for the day and for the model. The one list that booking, the first
-- lease of a book and the reconciliation go by. Those of the month of users and teams are always kept, the others from when a limit first asks for them.
create function usage_books(user_id bigint, team_ids bigint[], key_id bigint, route text, day date, out owner text, out is_always boolean)
returns setof record language sql stable as $$
  select whose || part, part = '' and whose not like 'key:%'
  from (
    select 'user:' || user_id union all select 'key:' || key_id union all select 'team:' || team from unnest(team_ids) as team
  ) as one(whose), (values (''), ('@' || to_char(day, 'YYYY-MM-DD')), ('/' || route)) as suffix(part)
$$;

-- What was spent before a limit first asked for a book.
create function book_so_far(the_owner text, the_month text)
returns table (inference bigint, train bigint, usd numeric, requests bigint, input_tokens bigint, output_tokens bigint) language plpgsql stable as $$
declare
  parts text[] := regexp_match(the_owner, '^(user|team|key):(\d+)(?:([@/])(.*))?$');
  kind text := parts[1];
  id bigint := parts[2]::bigint;
  day timestamptz := case when parts[3] = '@' then (parts[4] || ' 00:00:00+00')::timestamptz end;
  the_route text := case when parts[3] = '/' then parts[4] end;
  the_user bigint := case kind when 'user' then id end;
begin
  return query
  select coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0)::bigint, coalesce(sum(plan_tokens) filter (where balance = 'train'), 0)::bigint,
    coalesce(sum(cost_usd), 0), coalesce(sum(hours.requests), 0)::bigint, coalesce(sum(hours.input_tokens), 0)::bigint,
    coalesce(sum(hours.output_tokens), 0)::bigint
  from (
    select * from usage_hour where month = the_month and (the_user is null or user_id = the_user)
      and hour >= coalesce(day, '-infinity') and hour < coalesce(day + interval '1 day', 'infinity')
    union all
    select * from usage_fresh where month = the_month and (the_user is null or user_id = the_user)
      and hour >= coalesce(day, '-infinity') and hour < coalesce(day + interval '1 day', 'infinity')
  ) as hours
  where case kind when 'user' then user_id = id when 'key' then key_id = id else team_ids @> array[id] end and (the_route is null or route = the_route);
end $$;

-- As before. A book that no limit has asked for yet is opened with what was spent before, while nobody books.
create or replace function account_lock(accounts jsonb) returns void language plpgsql as $$
begin
  if exists (
    select from jsonb_to_recordset(accounts) as account(owner text collate "C", month text collate "C")
    where month <> '' and owner !~ '^(user|team):\d+$'
      and not exists (select from spent where spent.owner = account.owner and spent.month = account.month)
  ) then
    perform pg_advisory_xact_lock(7239014555);
    insert into spent (owner, month, inference, train, usd, requests, input_tokens, output_tokens)
    select account.owner, account.month, sums.* from (
      select distinct owner, month from jsonb_to_recordset(accounts) as account(owner text collate "C", month text collate "C")
      where month <> '' and owner !~ '^(user|team):\d+$'
        and not exists (select from spent where spent.owner = account.owner and spent.month = account.month)
      order by owner, month
    ) as account, book_so_far(account.owner, account.month) as sums
    on conflict (owner, month) do nothing;
  end if;
  insert into spent (owner, month)
  select distinct owner, month from jsonb_to_recordset(accounts) as account(owner text collate "C", month text collate "C") order by owner, month
  on conflict (owner, month) do update set requests = 0 where false;
end $$;

-- As before, into all books that are kept.
create or replace function usage_book(the_holder text, rows json) returns bigint language plpgsql as $$
declare
  many bigint;
begin
  perform pg_advisory_xact_lock_shared(7239014555); -- no book is opened meanwhile
  with added as (
    insert into usage
    select * from usage_rows(rows)
    on conflict do nothing
    returning *
  ), parts as (
    select month, (at at time zone 'UTC')::date as day, user_id, team_ids, key_id, coalesce(route, model) as route,
      coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0) as inference,
      coalesce(sum(plan_tokens) filter (where balance = 'train'), 0) as train, coalesce(sum(cost_usd), 0) as usd,
      count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from added group by 1, 2, 3, 4, 5, 6
  ), shares as (
    select owner, month, is_always, sum(inference) as inference, sum(train) as train, sum(usd) as usd, sum(requests) as requests,
      sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens
    from parts, usage_books(user_id, team_ids, key_id, route, day) group by 1, 2, 3
  ), sums as materialized (
    select owner, month, inference, train, usd, requests, input_tokens, output_tokens from shares
    where is_always or exists (select from spent where spent.owner = shares.owner and spent.month = shares.month)
  ), booked as (
    insert into spent as old
    select * from sums order by owner collate "C", month
    on conflict (owner, month) do update set
      inference = old.inference + excluded.inference, train = old.train + excluded.train, usd = old.usd + excluded.usd,
      requests = old.requests + excluded.requests, input_tokens = old.input_tokens + excluded.input_tokens,
      output_tokens = old.output_tokens + excluded.output_tokens
    returning owner, month
  ), settled as (
    update leases set settled = settled + case kind when 'inference' then sums.inference when 'train' then sums.train else sums.usd end
    from booked join sums using (owner, month)
    where leases.owner = booked.owner and leases.month = booked.month and kind in ('inference', 'train', 'usd') and holder = the_holder
  ), fresh as (
    insert into usage_fresh
    select month, hour, user_id, key_id, app, face, model, provider, region, tags, requests, input_tokens, output_tokens, plan_tokens, cost_usd, errors,
      balance, team_ids, route, cached_tokens, times_of(first_times), times_of(total_times),
      usage_series(app, face, model, route, provider, region, tags, balance, team_ids)
    from (
      select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance,
        team_ids, coalesce(route, model) as route, count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
        sum(plan_tokens) as plan_tokens, coalesce(sum(cost_usd), 0) as cost_usd, count(*) filter (where status >= 400 and status <> 499) as errors,
        sum(cached_tokens) as cached_tokens, array_agg(first_token_ms) as first_times, array_agg(total_ms) as total_times
      from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    ) as sums
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;
