import '#kit/planted';
import './planted.ts';
import 'node:fs';
