/* Makes a data folder with a database that has all tables and no rows: `node --conditions=dragoman-source migrated-database.ts FOLDER`. */
import { migrations } from '../../src/app/database.ts';
import { systemClock } from '#kit/async/clock';
import { openStore } from '#store/open';

const store = await openStore({ folder: process.argv[2]!, migrations, clock: systemClock });
await store.close();
