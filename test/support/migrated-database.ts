/* Makes a data folder with a database that has all tables and no rows: `node --conditions=dragoman-source migrated-database.ts FOLDER [DATABASE_URL]`. */
import { migrations } from '../../src/app/database.ts';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';

const [folder, databaseUrl] = process.argv.slice(2);
const store = await openStore({ folder: folder!, ...(databaseUrl === undefined ? {} : { databaseUrl }), migrations, clock: systemClock });
await store.close();
