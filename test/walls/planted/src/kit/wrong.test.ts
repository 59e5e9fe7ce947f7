import '#core/planted';
import '../core/planted.ts';
import '../../bench/planted.ts';
