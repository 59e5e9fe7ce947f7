import '../../test/planted.ts';
import './planted.ts';
import { createServer } from 'node:http';
