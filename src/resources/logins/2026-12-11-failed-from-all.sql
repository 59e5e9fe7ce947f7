-- from one network only so many sign-ins and requests for tokens may fail, whatever their accounts
create index login_failures_of_all on login (failed_from, at) where failed_from is not null;
