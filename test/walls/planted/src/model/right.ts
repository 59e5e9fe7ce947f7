import '#model/planted';
import './planted.ts';
import 'node:fs';
