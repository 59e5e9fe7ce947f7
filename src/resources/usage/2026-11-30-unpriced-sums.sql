-- Calls whose price is not known, which the sums of costs lack. A call that was refused, and of which nothing was used, costs nothing.
create function is_unpriced(cost_usd numeric, status integer, input_tokens bigint, output_tokens bigint) returns boolean language sql immutable as $$
  select cost_usd is null and (status < 400 or input_tokens + output_tokens > 0)
$$;
-- Those of the hours that are summed already, read before anything is locked.
create temporary table unpriced_hour on commit drop as
select month, hour, user_id, key_id, app, face, model, provider, region, tags, balance, team_ids, route,
  usage_series(app, face, model, route, provider, region, tags, balance, team_ids) as series, many
from (
  select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance, team_ids,
    coalesce(route, model) as route, count(*) as many
  from usage where is_unpriced(cost_usd, status, input_tokens, output_tokens) group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
) as counted;
alter table usage_hour add column unpriced bigint not null default 0;
alter table usage_fresh add column unpriced bigint not null default 0;
insert into usage_fresh
select month, hour, user_id, key_id, app, face, model, provider, region, tags, 0, 0, 0, 0, 0, 0, balance, team_ids, route, 0, '{}', '{}', series, many
from unpriced_hour;

-- As before, with the unpriced calls.
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
  )
  select count(*) into moved from gone;
  return moved;
end $$;

-- As before, with the unpriced calls.
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
      usage_series(app, face, model, route, provider, region, tags, balance, team_ids), unpriced
    from (
      select month, date_trunc('hour', at, 'UTC') as hour, user_id, key_id, app, face, model, provider, region, coalesce(tags::text, '') as tags, balance,
        team_ids, coalesce(route, model) as route, count(*) as requests, sum(input_tokens) as input_tokens, sum(output_tokens) as output_tokens,
        sum(plan_tokens) as plan_tokens, coalesce(sum(cost_usd), 0) as cost_usd, count(*) filter (where status >= 400 and status <> 499) as errors,
        sum(cached_tokens) as cached_tokens, array_agg(first_token_ms) as first_times, array_agg(total_ms) as total_times,
        count(*) filter (where is_unpriced(cost_usd, status, input_tokens, output_tokens)) as unpriced
      from added group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
    ) as sums
    returning requests
  )
  select coalesce(sum(requests), 0) into many from fresh;
  return many;
end $$;
