import '#store/planted';
import '#model/planted';
import '../model/planted.ts';
import '#kit/planted';
import '../kit/planted.ts';
import './planted.ts';
import 'node:fs';
