// node bin/run.js test/settings/write.ts: writes docs/settings.md.
import { writeFileSync } from 'node:fs';
import { settingsPage } from './page.ts';

writeFileSync(new URL('../../docs/settings.md', import.meta.url), settingsPage());
