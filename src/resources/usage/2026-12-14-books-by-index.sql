-- As before, by the index on the owner: the sums of a key are among those of its user. Planned anew each time: a generic plan would scan everybody's sums
-- while booking is locked.
create or replace function book_so_far(the_owner text, the_month text)
returns table (inference bigint, train bigint, usd numeric, requests bigint, input_tokens bigint, output_tokens bigint) language plpgsql stable as $$
declare
  parts text[] := regexp_match(the_owner, '^(user|team|key):(\d+)(?:([@/])(.*))?$');
  kind text := parts[1];
  the_id bigint := parts[2]::bigint;
  day timestamptz := case when parts[3] = '@' then (parts[4] || ' 00:00:00+00')::timestamptz end;
  the_route text := case when parts[3] = '/' then parts[4] end;
  the_user bigint;
  its text := case kind when 'user' then 'user_id = $1' when 'team' then 'team_ids @> array[$1]' else 'key_id = $1' end;
begin
  if kind = 'key' and to_regclass('api_keys') is not null then
    select user_id into the_user from api_keys where id = the_id;
  end if;
  its := its || case when the_user is null then '' else ' and user_id = $2' end || ' and month = $3 and hour >= $4 and hour < $5'
    || case when the_route is null then '' else ' and route = $6' end;
  return query execute format($query$
    select coalesce(sum(plan_tokens) filter (where balance = 'inference'), 0)::bigint, coalesce(sum(plan_tokens) filter (where balance = 'train'), 0)::bigint,
      coalesce(sum(cost_usd), 0), coalesce(sum(requests), 0)::bigint, coalesce(sum(input_tokens), 0)::bigint, coalesce(sum(output_tokens), 0)::bigint
    from (select * from usage_hour where %1$s union all select * from usage_fresh where %1$s) as hours
  $query$, its) using the_id, the_user, the_month, coalesce(day, '-infinity'), coalesce(day + interval '1 day', 'infinity'), the_route;
end $$;
